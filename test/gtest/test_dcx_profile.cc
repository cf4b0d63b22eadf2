/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Profiles of devices: which one is used, which are refused, and the features
 * and thresholds that they set. No device is needed.
 */
#include "ucx_log.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <ucs/sys/math.h>

extern "C" {
#include "uct/dcx/dev/dcx_profile.h"
}

namespace {

namespace fs = std::filesystem;

const char results[]          = "nests pass\ninline52 fail\ntm_keys pass\n"
                                "umr_us_4 1.50\n";
const uint32_t results_passed = UCS_BIT(UCT_DCX_PROFILE_NESTS) |
                                UCS_BIT(UCT_DCX_PROFILE_TM_KEYS);

class dcx_profile : public testing::Test {
protected:
    dcx_profile()
    {
        char dir[] = "/tmp/dcx_profile.XXXXXX";

        m_dir = mkdtemp(dir);
        setenv("XDG_CONFIG_HOME", (m_dir / "user").c_str(), 1);
        setenv("DCX_PROFILES", (m_dir / "installed").c_str(), 1);
        fs::create_directories(m_dir / "user/dcx");
        fs::create_directories(m_dir / "installed");
        m_id.part = 4123;
        strcpy(m_id.psid, "MT_0000000223");
        strcpy(m_id.firmware, "20.35.1012");
        strcpy(m_id.driver, "6.1.0-18-amd64");
    }

    ~dcx_profile() { fs::remove_all(m_dir); }

    std::string file(const char *name = "a.profile") { return m_dir / name; }

    std::string installed()
    {
        return m_dir / "installed/MT_0000000223-4123-20.35.1012.profile";
    }

    std::string users()
    {
        char path[PATH_MAX];

        EXPECT_EQ(UCS_OK, uct_dcx_profile_user_path(&m_id, path));
        return path;
    }

    void write(const std::string &path, const uct_dcx_profile_id_t &id,
               const char *lines = results)
    {
        EXPECT_EQ(UCS_OK, uct_dcx_profile_write(path.c_str(), &id, lines));
    }

    std::string read(const std::string &path)
    {
        std::stringstream text;

        text << std::ifstream(path).rdbuf();
        return text.str();
    }

    uct_dcx_profile_t load(const std::string &option)
    {
        uct_dcx_profile_t profile;

        uct_dcx_profile_load(&profile, option.c_str(), &m_id);
        return profile;
    }

    void expect_none(const std::string &option)
    {
        uct_dcx_profile_t profile = load(option);

        EXPECT_STREQ("", profile.path);
        EXPECT_EQ(0u, profile.passed);
        EXPECT_EQ(0u, profile.failed);
    }

    /* Expects that the profile is refused, with one line in the log. */
    void expect_refused(const std::string &option, const std::string &why,
                        std::string path = "")
    {
        ucx_log_reader log;

        path = path.empty() ? option : path;
        expect_none(option);
        EXPECT_EQ("profile " + path + " is not used: " + why +
                      "; run "
                      "dcx_selftest to write a new one, or set "
                      "UCX_DCX_PROFILE=none\n",
                  log.take());
    }

    void expect_holds(const std::string &option, const std::string &path)
    {
        uct_dcx_profile_t profile = load(option);

        EXPECT_EQ(path, profile.path);
        EXPECT_EQ(results_passed, profile.passed);
        EXPECT_EQ(0u, profile.failed);
    }

    fs::path m_dir;
    uct_dcx_profile_id_t m_id = {};
};

TEST_F(dcx_profile, text)
{
    write(file(), m_id);
    std::string text = read(file());

    EXPECT_EQ(0u, text.find("dcx profile 1\npart 4123\npsid MT_0000000223\n"
                            "firmware 20.35.1012\ndriver 6.1.0-18-amd64\n" +
                            std::string(results) + "crc "));
    expect_holds(file(), file());
}

TEST_F(dcx_profile, places)
{
    expect_none("auto");
    write(installed(), m_id);
    expect_holds("auto", installed());
    write(users(), m_id);
    expect_holds("auto", users());
    expect_none("none");
    write(file(), m_id);
    expect_holds(file(), file());

    unsetenv("XDG_CONFIG_HOME");
    setenv("HOME", m_dir.c_str(), 1);
    EXPECT_EQ(m_dir.string() +
                  "/.config/dcx/MT_0000000223-4123-20.35.1012.profile",
              users());
    unsetenv("HOME");
    char path[PATH_MAX];
    EXPECT_EQ(UCS_ERR_NO_ELEM, uct_dcx_profile_user_path(&m_id, path));
}

/* The first existing profile decides, even if it is refused: a later one might
 * claim features that the first denies. */
TEST_F(dcx_profile, a_refused_one_decides)
{
    write(installed(), m_id);
    std::ofstream(users()) << "nonsense\n";
    ucx_log_reader log;
    expect_none("auto");
    EXPECT_NE(std::string::npos, log.take().find("it is not a profile of dcx"));
}

TEST_F(dcx_profile, damaged)
{
    write(file(), m_id);
    const std::string text = read(file());

    for (size_t i = 0; i < text.size(); i++) {
        std::string bad = text;

        bad[i] ^= 1;
        std::ofstream(file()) << bad;
        ucx_log_reader log;
        expect_none(file());
        EXPECT_NE(std::string::npos, log.take().find("is not used")) << i;
    }
    for (size_t length = 0; length < text.size(); length++) {
        std::ofstream(file()) << text.substr(0, length);
        ucx_log_reader log;
        expect_none(file());
        EXPECT_NE(std::string::npos, log.take().find("is not used")) << length;
    }
    std::ofstream(file()) << text << "nests pass\n";
    expect_refused(file(), "it is damaged");
    std::ofstream(file()) << text << std::string(1, '\0');
    expect_refused(file(), "it is damaged");
    std::ofstream(file()) << "dcx profile 2\n";
    expect_refused(file(), "it has the format of another version of dcx");
    expect_refused(file("nothing"), "No such file or directory");
    expect_refused(m_dir, "it is not a file");
}

TEST_F(dcx_profile, of_another_device)
{
    uct_dcx_profile_id_t id = m_id;

    id.part = 4129;
    write(file(), id);
    expect_refused(file(), "it is for part 4129, and this device has 4123");
    id = m_id;
    strcpy(id.psid, "MT_0000000224");
    write(file(), id);
    expect_refused(
        file(),
        "it is for psid MT_0000000224, and this device has MT_0000000223");
    id = m_id;
    strcpy(id.firmware, "20.35.1013");
    write(file(), id);
    expect_refused(
        file(),
        "it is for firmware 20.35.1013, and this device has 20.35.1012");
    id = m_id;
    strcpy(id.driver, "6.1.0-19-amd64");
    write(file(), id);
    expect_refused(file(),
                   "it is for driver 6.1.0-19-amd64, and this device has "
                   "6.1.0-18-amd64");
    strcpy(id.driver, "any");
    write(file(), id);
    expect_holds(file(), file());
}

/* A device of another part has its own profile; the existing one is not
 * mentioned. */
TEST_F(dcx_profile, of_another_part)
{
    uct_dcx_profile_id_t id = m_id;
    const std::string first = users();

    write(first, m_id);
    m_id.part = 4124;
    EXPECT_NE(first, users());
    ucx_log_reader log;
    expect_none("auto");
    EXPECT_EQ("", log.take());
    m_id = id;
}

TEST_F(dcx_profile, of_earlier_firmware)
{
    const std::string old = users();

    write(old, m_id);
    strcpy(m_id.firmware, "20.36.1");
    expect_refused("auto",
                   "it is for firmware 20.35.1012, and this device has 20.36.1",
                   old);
    expect_none("none");
    const std::string right = m_dir /
                              "installed/MT_0000000223-4123-20.36.1.profile";
    write(right, m_id);
    ucx_log_reader log;
    expect_holds("auto", right);
    EXPECT_EQ("", log.take());
}

/* Files of other devices, and unfinished ones, are not mistaken for profiles of
 * earlier firmware. */
TEST_F(dcx_profile, of_earlier_firmware_among_others)
{
    for (const char *name : {"MT_0000000224-4123-1", "MT_0000000223-41-1",
                             "MT_0000000223-4123-"}) {
        std::ofstream(m_dir / "installed" / (std::string(name) + ".profile"));
    }
    std::ofstream(users() + ".XXXXXX"); /* an unfinished one */
    ucx_log_reader log;
    expect_none("auto");
    EXPECT_EQ("", log.take());
}

TEST_F(dcx_profile, control_characters)
{
    uct_dcx_profile_id_t id = m_id;

    strcpy(id.psid, "a\033[2J\x9b");
    write(file(), id);
    expect_refused(file(),
                   "it is for psid a?[2J?, and this device has MT_0000000223");
    std::string old = m_dir / "user/dcx/MT_0000000223-4123-1\0332.profile";
    write(old, m_id);
    old.replace(old.find('\033'), 1, "?");
    expect_refused(
        "auto", "it is for firmware 1?2, and this device has 20.35.1012", old);
}

TEST_F(dcx_profile, levels)
{
    write(file(), m_id, "depth pass\n");
    EXPECT_EQ(0u, load(file()).levels);
    write(file(), m_id, "depth fail\nlevels 3\n");
    EXPECT_EQ(3u, load(file()).levels);
    write(file(), m_id, "depth fail\nlevels 0\n"); /* list4 has proven one
                                                    * level */
    EXPECT_EQ(1u, load(file()).levels);
}

TEST_F(dcx_profile, writable_by_others)
{
    write(file(), m_id);
    for (mode_t mode : {0664, 0646}) {
        ASSERT_EQ(0, chmod(file().c_str(), mode));
        expect_refused(file(),
                       "other users can write to it (chmod go-w fixes that)");
    }
    write(installed(), m_id);
    ASSERT_EQ(0, chmod(installed().c_str(), 0664));
    expect_refused("auto",
                   "other users can write to it (chmod go-w fixes that)",
                   installed()); /* in the folder of DCX_PROFILES */
}

TEST_F(dcx_profile, of_another_user)
{
    write(file(), m_id);
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can change an owner";
    }
    ASSERT_EQ(0, chown(file().c_str(), 12345, -1));
    expect_refused(file(), "it belongs to user 12345, not to root or you");
    write(installed(), m_id);
    ASSERT_EQ(0, chown(installed().c_str(), 12345, -1));
    expect_refused("auto", "it belongs to user 12345, not to root or you",
                   installed());
}

/* A probe of a default feature has failed. A port without tag matching has no
 * effect on another port. */
TEST_F(dcx_profile, failed)
{
    const struct {
        const char *line;
        uint32_t failed;
    } rows[] = {
        {"ksm_boundary fail\n", UCS_BIT(UCT_DCX_PROFILE_KSM)},
        {"strided fail\nlist4 pass\n", UCS_BIT(UCT_DCX_PROFILE_UMR)},
        {"list4 refused\n", UCS_BIT(UCT_DCX_PROFILE_UMR)},
        {"tm_eager fail\ninvalidation fail\n",
         UCS_BIT(UCT_DCX_PROFILE_TM) | UCS_BIT(UCT_DCX_PROFILE_KSM)},
        {"tm_rndv refused\nksm_large pass\nmmio_bf fail\n", 0},
        {"depth fail\nlevels 3\n", 0},
        {"depth refused\nksm_large not_run\nlist4 not_run\n", 0},
    };

    for (const auto &row : rows) {
        write(file(), m_id, row.line);
        EXPECT_EQ(row.failed, load(file()).failed) << row.line;
    }
}

/* Bytes that are copied during a UMR: not below the default, nor above 16 times
 * that. */
TEST_F(dcx_profile, thresholds)
{
    const size_t kb = 1024;
    const struct {
        const char *lines;
        std::vector<size_t> bytes; /* thresholds of uct_dcx_threshold_t */
    } rows[] = {
        {"", {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 0.50\numr_us_52 2.45\numr_us_1024 41.50\ncopy_mbs 10000\n",
         {5000, 401, 256 * kb, 401}},
        {"copy_mbs 5000\numr_us_52 60.01\numr_us_4 1\numr_us_1024 103.\n",
         {5000, 500, 300050, 500}},
        {"umr_us_4 1\numr_us_52 9\numr_us_1024 11.5\ncopy_mbs 10000\n",
         {10000, 102, 256 * kb, 256}},
        /* too low */
        {"umr_us_4 0.1\numr_us_52 1\numr_us_1024 2\ncopy_mbs 1000\n",
         {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 50\numr_us_1024 1\ncopy_mbs 40\n",
         {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 0\numr_us_52 0.0\numr_us_1024 900\ncopy_mbs 10000\n",
         {2 * kb, 64, 256 * kb, 256}},
        /* too high */
        {"umr_us_4 99999999999999999999999999999999\numr_us_52 1000000000\n"
         "copy_mbs 999999999999999\n",
         {32 * kb, 64, 4096 * kb, 256}},
        {"umr_us_4 1\numr_us_1024 1000000\ncopy_mbs 10000\n",
         {10000, kb, 256 * kb, 4 * kb}},
        /* incomplete, or not a number */
        {"umr_us_4 5\numr_us_52 50\numr_us_1024 500\n",
         {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 nan\numr_us_52 inf\numr_us_1024 500\ncopy_mbs 10000\n",
         {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 -5\numr_us_52 1e9\ncopy_mbs 10000\n",
         {2 * kb, 64, 256 * kb, 256}},
        {"umr_us_4 5,1\numr_us_52 5.0.1\numr_us_1024  9\ncopy_mbs 0x999\n",
         {2 * kb, 64, 256 * kb, 256}},
    };

    for (const auto &row : rows) {
        write(file(), m_id, row.lines);
        auto profile = load(file());
        EXPECT_EQ(row.bytes, std::vector<size_t>(std::begin(profile.thresholds),
                                                 std::end(profile.thresholds)))
            << row.lines;
    }
    EXPECT_EQ(2 * kb, load("none").thresholds[UCT_DCX_THRESHOLD_COPY]);
}

TEST_F(dcx_profile, not_written)
{
    ucx_log_reader log;

    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_dcx_profile_write(file("no/folder").c_str(), &m_id, ""));
    EXPECT_EQ("failed to write profile " + file("no/folder") +
                  ": No such file or directory\n",
              log.take());
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_dcx_profile_write(m_dir.c_str(), &m_id, ""));
    EXPECT_EQ("failed to write profile " + m_dir.string() + ": File exists\n",
              log.take());
}

} /* namespace */
