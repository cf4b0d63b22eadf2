/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * Rules of SOFTHCA_FAULT: their text, its errors, and the events that a rule
 * selects
 */
#include "../times.h"

#include <stdatomic.h>

/* C headers: a function may have the name of a structure */
extern "C" {
#include "softhca/base/hca_log.h"
#include "softhca/fabric/hca_rules.h"
#include "softhca/fabric/hca_timer.h"
}

#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace {

class hca_rule_test : public testing::Test {
protected:
    void set(const std::string &rules)
    {
        setenv("SOFTHCA_FAULT", rules.c_str(), 1);
        hca_rules_init();
    }

    void TearDown() override
    {
        unsetenv("SOFTHCA_FAULT");
        hca_rules_init();
    }

    /* Returns the reason for which a rule is refused; "" if it is not. */
    static std::string refusal(const std::string &text)
    {
        char why[HCA_RULE_WHY] = "";
        struct hca_rule rule;

        return hca_rule_parse(&rule, text.c_str(), why) ? "" : why;
    }

    static char next(uint64_t length = 64, uint8_t op = 0, int peer = 0)
    {
        struct hca_rule_event event = {};
        uint64_t n;

        event.op     = op;
        event.peer   = peer;
        event.length = length;
        return (hca_rules_find(&event, &n) != NULL) ? 'x' : '.';
    }

    /* Returns an x for each event that the rule selects; these are its ages at
     * the events, in seconds. */
    static std::string by_time(const std::string &text,
                               const std::vector<uint64_t> &ages)
    {
        struct hca_rule_event event = {};
        char why[HCA_RULE_WHY]      = "";
        struct hca_rule rule;
        std::string events;
        uint64_t n;

        EXPECT_TRUE(hca_rule_parse(&rule, text.c_str(), why)) << why;
        for (uint64_t age : ages) {
            rule.start_ns = hca_time_ns() - age * 1000000000;
            bool is_hit   = hca_rule_matches(&rule, &event) &&
                          hca_rule_count(&rule, &n);
            events += is_hit ? 'x' : '.';
        }
        return events;
    }

    /* Returns an x for each event that the rules select. */
    std::string events(const std::string &rules, unsigned num)
    {
        std::string text;

        set(rules);
        for (unsigned i = 0; i < num; i++) {
            text += next();
        }
        return text;
    }
};

/* --- the text ------------------------------------------------------------- */

TEST_F(hca_rule_test, names_what_is_wrong)
{
    const struct {
        const char *text, *why;
    } rows[] = {
        {"lose", "there is no fault \"lose\""},
        {":nth=1", "there is no fault \":nth=1\""},
        {"drop:nht=1", "drop has no key \"nht\""},
        {"drop:time=1ms", "drop has no key \"time\""},
        {"drop:nth", "nth: use a number from 1 on"},
        {"drop:nth=0", "nth: use a number from 1 on"},
        {"drop:nth=-1", "nth: use a number from 1 on"},
        {"drop:nth=1x", "nth: use a number from 1 on"},
        {"drop:count=", "count: use a number, 0 for no limit"},
        {"drop:every=0", "every: use a number from 1 on"},
        {"drop:p=1.1", "p: use a probability from 0 to 1"},
        {"drop:p=-0.1", "p: use a probability from 0 to 1"},
        {"drop:p=x", "p: use a probability from 0 to 1"},
        {"drop:seed=4294967296", "seed: use a number below 2^32"},
        {"drop:after=10", "after: use a time: 10us, 10ms, 10s"},
        {"drop:after=ms", "after: use a time: 10us, 10ms, 10s"},
        {"drop:for=1000001s", "for: use a time: 10us, 10ms, 10s"},
        {"drop:op=put", "op: use send, write, read or atomic"},
        {"drop:op=umr", "op: use send, write, read or atomic"},
        {"qp_fatal:op=put", "op: use send, write, read, atomic, umr or tag"},
        {"drop:min=x", "min: use a number of bytes"},
        {"drop:max=1k", "max: use a number of bytes"},
        {"drop:peer=me", "peer: use a process id"},
        {"drop:pid=0", "pid: use a process id"},
        {"delay:jitter=1", "jitter: use a time: 10us, 10ms, 10s"},
        {"drop:name=x", "drop has no key \"name\""},
        {"fail_verb:op=send", "fail_verb has no key \"op\""},
        {"fail_devx:errno=EIO", "fail_devx has no key \"errno\""},
        {"fail_verb:name=", "name: use the name of a command, or of an object"},
        {"fail_verb:errno=5", "errno: use EPERM, EIO, EAGAIN, ENOMEM, EBUSY, "
                              "EINVAL, EMFILE, ENOSPC or EOPNOTSUPP"},
        {"delay:rate=0", "rate: use megabytes a second, from 1 on"},
    };

    for (const auto &row : rows) {
        EXPECT_EQ(row.why, refusal(row.text)) << row.text;
    }
    EXPECT_EQ("a rule is too long", refusal(std::string(128, 'x')));
    EXPECT_EQ("", refusal("drop:op=read:nth=2:count=0:every=3:p=0.5:seed=9:"
                          "after=1us:for=2s:min=1:max=2:peer=3"));
    EXPECT_EQ("", refusal("fail_verb:name=write:errno=EIO"));
    EXPECT_EQ("", refusal("delay:time=1ms:jitter=1ms:seed=1:rate=100"));
}

TEST_F(hca_rule_test, wrong_text_sets_no_rule)
{
    testing::internal::CaptureStderr();
    EXPECT_EQ("..", events("drop:count=0,drop:nth=0", 2));
    EXPECT_EQ(".", events("drop,drop,drop,drop,drop,drop,drop,drop,drop", 1));
    std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(std::string::npos,
              log.find("SOFTHCA_FAULT=drop:count=0,drop:nth=0: nth: use"))
        << log;
    EXPECT_NE(std::string::npos, log.find(": use up to 8 rules")) << log;
}

/* --- the choice ----------------------------------------------------------- */

TEST_F(hca_rule_test, selects_by_number)
{
    EXPECT_EQ("x.....", events("drop", 6));
    EXPECT_EQ("..x...", events("drop:nth=3", 6));
    EXPECT_EQ("..xx..", events("drop:nth=3:count=2", 6));
    EXPECT_EQ("..xxxx", events("drop:nth=3:count=0", 6));
    EXPECT_EQ(".x..x..x", events("drop:nth=2:every=3", 8));
    EXPECT_EQ(".x..x...", events("drop:nth=2:every=3:count=2", 8));
    /* the second rule does not count what the first one takes */
    EXPECT_EQ("x.x.", events("drop,drop:nth=2", 4));
}

TEST_F(hca_rule_test, selects_by_chance_and_seed)
{
    const unsigned num = 100000;
    std::string first  = events("drop:p=0.01:seed=7", num);
    long hits          = std::count(first.begin(), first.end(), 'x');

    /* 1,000 with a deviation of 31 */
    EXPECT_LT(std::abs(hits - 1000), 160);
    EXPECT_EQ(first, events("drop:p=0.01:seed=7", num));
    EXPECT_NE(first, events("drop:p=0.01:seed=8", num));
    EXPECT_EQ(std::string(100, '.'), events("drop:p=0:seed=1", 100));
    EXPECT_EQ(std::string(100, 'x'), events("drop:p=1", 100));
    EXPECT_EQ("xx..", events("drop:p=1:count=2", 4));

    std::string few = events("drop:p=0.5:seed=7:count=3:nth=11", 100);
    EXPECT_EQ(3, std::count(few.begin(), few.end(), 'x'));
    EXPECT_GE(few.find('x'), 10u);
}

/* The log has the rule to repeat the run with. */
TEST_F(hca_rule_test, random_seed_is_in_the_log)
{
    const std::string before = "fault: random seed: ";

    testing::internal::CaptureStderr();
    std::string first  = events("drop:p=0.5", 200);
    std::string second = events("drop:p=0.5", 200);
    std::string log    = testing::internal::GetCapturedStderr();
    EXPECT_NE(first, second);
    size_t at = log.find(before);
    ASSERT_NE(std::string::npos, at) << log;
    at += before.size();
    std::string rule = log.substr(at, log.find('\n', at) - at);
    EXPECT_EQ(0u, rule.find("drop:p=0.5:seed="));
    testing::internal::CaptureStderr();
    EXPECT_EQ(first, events(rule, 200)) << rule;
    EXPECT_EQ("", testing::internal::GetCapturedStderr());
}

TEST_F(hca_rule_test, selects_by_kind_of_message)
{
    set("drop:op=read:count=0");
    EXPECT_EQ('.', next(64, 1));
    EXPECT_EQ('x', next(64, 2));

    set("qp_fatal:count=0");
    EXPECT_EQ('x', next());
    EXPECT_EQ('.', next(0, HCA_RULE_OP_UMR)) << "it sends no message";
    set("qp_fatal:op=tag");
    EXPECT_EQ('.', next());
    EXPECT_EQ('.', next(0, HCA_RULE_OP_UMR));
    EXPECT_EQ('x', next(0, HCA_RULE_OP_TAG));

    set("drop:min=10:max=20:nth=2");
    EXPECT_EQ('.', next(10));
    EXPECT_EQ('.', next(9));
    EXPECT_EQ('.', next(21));
    EXPECT_EQ('x', next(20));

    set("drop:count=0:pid=" + std::to_string(getpid()));
    EXPECT_EQ('x', next());
    set("drop:count=0:pid=" + std::to_string(getpid() + 1));
    EXPECT_EQ('.', next());

    set("drop:peer=7");
    EXPECT_EQ('.', next(64, 0, 8));
    EXPECT_EQ('x', next(64, 0, 7));
}

TEST_F(hca_rule_test, fails_by_name)
{
    set("fail_verb:name=create_cq:errno=EIO:count=0,fail_alloc:nth=2");
    EXPECT_EQ(0, hca_rules_fail(HCA_RULE_VERB, "create_qp"));
    EXPECT_EQ(-EIO, hca_rules_fail(HCA_RULE_VERB, "create_cq"));
    EXPECT_EQ(-EIO, hca_rules_fail(HCA_RULE_VERB, "create_cq"));
    EXPECT_EQ(0, hca_rules_fail(HCA_RULE_DEVX, "create_cq"));
    EXPECT_EQ(0, hca_rules_fail(HCA_RULE_ALLOC, "cq"));
    EXPECT_EQ(-ENOMEM, hca_rules_fail(HCA_RULE_ALLOC, "qp"));
    EXPECT_EQ('.', next());
}

/* The time of a rule begins when it is set. */
TEST_F(hca_rule_test, selects_by_time)
{
    EXPECT_EQ("...x.", by_time("drop:after=1000s", {0, 500, 999, 1001, 9000}))
        << "a single event";
    EXPECT_EQ("xx..", by_time("drop:for=1000s", {0, 999, 1001, 9000}));
    EXPECT_EQ("..xx..", by_time("drop:after=1000s:for=1000s",
                                {0, 999, 1001, 1999, 2001, 9000}));
    EXPECT_EQ("...x",
              by_time("drop:after=1000s:nth=2:count=0", {0, 999, 1001, 1002}))
        << "only events of its time count";

    set("drop:after=1000s");
    EXPECT_EQ('.', next());
    set("drop:for=1000s");
    EXPECT_EQ('x', next());
}

} /* namespace */
