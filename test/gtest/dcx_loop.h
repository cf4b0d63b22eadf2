/* Copyright (C) The dcx authors. BSD-3-Clause, see LICENSE. */
/*
 * dcx through UCT's API: loads the module, and opens an interface with an
 * endpoint to itself. Options come from the environment.
 */
#ifndef DCX_TEST_DCX_LOOP_H
#define DCX_TEST_DCX_LOOP_H

#include "hca_fixture.h"

#include <dlfcn.h>
#include <functional>

extern "C" {
#include "dcx_peek.h"

/* Exported by libuct, but declared in a public header of UCX only since 1.21,
 * where the second parameter is a pointer. Tests pass 0, valid for both. */
#if UCT_VERNO_MINOR >= 21
#include <uct/api/v2/uct_v2.h>
#else
ucs_status_t uct_ep_invalidate(uct_ep_h ep, unsigned flags);
#endif
}

#define UCT_CALL(_expr) \
    do { \
        ucs_status_t _status = (_expr); \
        if (_status != UCS_OK) { \
            throw std::runtime_error(std::string(#_expr ": ") + \
                                     ucs_status_string(_status)); \
        } \
    } while (0)

/* An interface, an endpoint to itself, and registered memory */
class dcx_loop {
public:
    static constexpr size_t mem_size = 16384;

    dcx_loop()
    {
        try {
            open();
        } catch (...) {
            close();
            throw;
        }
    }

    ~dcx_loop() { close(); }

    /* Returns the bytes of headroom before messages; a mode can set them. */
    static size_t headroom()
    {
        const char *bytes = getenv("DCX_TEST_HEADROOM");

        return (bytes != NULL) ? atoi(bytes) : 0;
    }

    /* Returns the module to load: the environment may name another build. */
    static const char *module()
    {
        const char *name = getenv("DCX_TEST_MODULE");

        return (name != NULL) ? name : DCX_TEST_MODULE;
    }

    struct dcx_view view() const
    {
        struct dcx_view view;

        dcx_peek(iface, m_iface_addr.data(), &view);
        return view;
    }

    /* Closes the interface only: after that the device no longer uses the
     * memory. */
    void close_iface()
    {
        if (ep != NULL) {
            uct_ep_destroy(ep);
            ep = NULL;
        }
        if (iface != NULL) {
            uct_iface_close(iface);
            iface = NULL;
        }
    }

    void flush()
    {
        dcx_deadline deadline;

        while (uct_iface_flush(iface, 0, NULL) == UCS_INPROGRESS) {
            deadline.check("a flushed interface");
            uct_worker_progress(worker);
        }
    }

    /* Creates another endpoint of this interface to itself; the caller destroys
     * it. */
    uct_ep_h make_ep(unsigned path_index = 0)
    {
        return make_ep(*this, path_index);
    }

    /* Creates an endpoint to another interface. */
    uct_ep_h make_ep(const dcx_loop &peer, unsigned path_index = 0)
    {
        uct_ep_h new_ep;

        UCT_CALL(
            create_ep(peer.m_dev_addr, peer.m_iface_addr, path_index, &new_ep));
        return new_ep;
    }

    /* Creates an endpoint to these addresses, valid or not. */
    ucs_status_t create_ep(const std::vector<uint8_t> &dev_addr,
                           const std::vector<uint8_t> &iface_addr,
                           unsigned path_index, uct_ep_h *new_ep)
    {
        std::vector<uint8_t> sealed = seal(dev_addr);
        uct_ep_params_t params      = {};

        params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                            UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR |
                            UCT_EP_PARAM_FIELD_PATH_INDEX;
        params.iface      = iface;
        params.dev_addr   = (uct_device_addr_t *)sealed.data();
        params.iface_addr = (uct_iface_addr_t *)iface_addr.data();
        params.path_index = path_index;
        return uct_ep_create(&params, new_ep);
    }

    /* Creates an endpoint of this interface to itself at this device
     * address. */
    ucs_status_t create_ep(const std::vector<uint8_t> &dev_addr,
                           unsigned path_index, uct_ep_h *new_ep)
    {
        return create_ep(dev_addr, m_iface_addr, path_index, new_ep);
    }

    uct_md_h md() const { return m_md; }

    uct_component_h component() const { return m_component; }

    std::vector<uint8_t> dev_addr() const { return m_dev_addr; }

    std::vector<uint8_t> iface_addr() const { return m_iface_addr; }

    /* Returns true if a peer with this device address is reachable. */
    bool is_reachable(const std::vector<uint8_t> &dev_addr) const
    {
        return is_reachable(dev_addr, m_iface_addr);
    }

    bool is_reachable(const std::vector<uint8_t> &dev_addr,
                      const std::vector<uint8_t> &iface_addr) const
    {
        return uct_iface_is_reachable(
            iface, (const uct_device_addr_t *)seal(dev_addr).data(),
            (const uct_iface_addr_t *)iface_addr.data());
    }

    uct_worker_h worker = NULL;
    uct_iface_h iface   = NULL;
    uct_iface_attr_t attr;
    uct_ep_h ep = NULL;
    std::vector<uint8_t> mem;
    uct_mem_h memh = UCT_MEM_HANDLE_NULL;

    /* Number of active messages of id 5 */
    unsigned received = 0;

    /* Called for messages and rendezvous requests that match no receive; if
     * empty, these are dropped. on_eager returns UCS_INPROGRESS to keep the
     * buffer. */
    std::function<ucs_status_t(void *data, size_t length, unsigned flags,
                               uct_tag_t tag, uint64_t imm)>
        on_eager;
    std::function<ucs_status_t(uct_tag_t tag, const void *hdr, unsigned length,
                               uint64_t remote, size_t size, const void *rkey)>
        on_rndv;

    /* Errors of endpoints; fatal unless `survives_errors` */
    std::vector<ucs_status_t> errors;
    std::vector<uct_ep_h> failed_eps;
    bool survives_errors = false;

    /* Writes a valid checksum to device addresses before they are used */
    bool seals = true;

private:
    /* Returns the address with its CRC-32C, computed bit by bit, if `seals`. */
    std::vector<uint8_t> seal(std::vector<uint8_t> dev_addr) const
    {
        uint32_t crc = ~(uint32_t)m_iface_addr[0]; /* version */
        size_t size  = dev_addr.size() - sizeof(crc);

        for (size_t bit = 0; bit < size * 8; bit++) {
            uint32_t in = (dev_addr[bit / 8] >> (bit % 8)) & 1;

            crc = (crc >> 1) ^ (((crc ^ in) & 1) ? 0x82f63b78 : 0);
        }
        crc = htobe32(~crc);
        if (seals) {
            memcpy(&dev_addr[size], &crc, sizeof(crc));
        }
        return dev_addr;
    }

    void open()
    {
        UCT_CALL(
            ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async));
        UCT_CALL(uct_worker_create(m_async, UCS_THREAD_MODE_SINGLE, &worker));
        open_md();
        open_iface();
        get_addresses();
        ep = make_ep();
        mem.resize(mem_size, 0x11);
        UCT_CALL(uct_md_mem_reg(m_md, mem.data(), mem_size,
                                UCT_MD_MEM_ACCESS_ALL, &memh));
    }

    void close()
    {
        close_iface();
        if (memh != UCT_MEM_HANDLE_NULL) {
            uct_md_mem_dereg(m_md, memh);
        }
        if (m_md != NULL) {
            uct_md_close(m_md);
        }
        if (worker != NULL) {
            uct_worker_destroy(worker);
        }
        if (m_async != NULL) {
            ucs_async_context_destroy(m_async);
        }
    }

    void open_md()
    {
        uct_component_h *list;
        unsigned count;

        HCA_CHECK_CALL(dlopen(module(), RTLD_NOW) != NULL);
        UCT_CALL(uct_query_components(&list, &count));
        for (unsigned i = 0; i < count; i++) {
            uct_component_attr_t found = {};

            found.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            UCT_CALL(uct_component_query(list[i], &found));
            if (!strcmp(found.name, "dcx")) {
                m_component = list[i];
                open_md(list[i]);
            }
        }
        uct_release_component_list(list);
        HCA_CHECK_CALL(m_md != NULL);
    }

    /* Opens m_md; leaves it unchanged on failure. */
    void open_md(uct_component_h component)
    {
        uct_md_config_t *config;

        if (uct_md_config_read(component, NULL, NULL, &config) == UCS_OK) {
            uct_md_open(component, "mlx5_0", config, &m_md);
            uct_config_release(config);
        }
    }

    void open_iface()
    {
        uct_iface_params_t params = {};
        uct_iface_config_t *config;

        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                            UCT_IFACE_PARAM_FIELD_DEVICE |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                            UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB |
                            UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG |
                            UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB |
                            UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_ARG |
                            UCT_IFACE_PARAM_FIELD_RX_HEADROOM;
        params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name  = "dcx";
        params.mode.device.dev_name = "mlx5_0:1";
        params.err_handler          = failed;
        params.err_handler_arg      = this;
        params.eager_cb             = eager;
        params.eager_arg            = this;
        params.rndv_cb              = rndv;
        params.rndv_arg             = this;
        params.rx_headroom          = headroom();
        UCT_CALL(uct_md_iface_config_read(m_md, "dcx", NULL, NULL, &config));
        ucs_status_t status = uct_iface_open(m_md, worker, &params, config,
                                             &iface);
        uct_config_release(config);
        UCT_CALL(status);
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        UCT_CALL(uct_iface_set_am_handler(iface, 5, count, &received, 0));
        UCT_CALL(uct_iface_query(iface, &attr));
    }

    void get_addresses()
    {
        m_dev_addr.resize(attr.device_addr_len);
        m_iface_addr.resize(attr.iface_addr_len);
        UCT_CALL(uct_iface_get_device_address(
            iface, (uct_device_addr_t *)m_dev_addr.data()));
        UCT_CALL(uct_iface_get_address(
            iface, (uct_iface_addr_t *)m_iface_addr.data()));
    }

    static ucs_status_t failed(void *arg, uct_ep_h ep, ucs_status_t status)
    {
        dcx_loop *self = (dcx_loop *)arg;

        self->errors.push_back(status);
        self->failed_eps.push_back(ep);
        return self->survives_errors ? UCS_OK : status;
    }

    static ucs_status_t eager(void *arg, void *data, size_t length,
                              unsigned flags, uct_tag_t tag, uint64_t imm,
                              void **)
    {
        dcx_loop *self = (dcx_loop *)arg;

        return self->on_eager ? self->on_eager(data, length, flags, tag, imm) :
                                UCS_OK;
    }

    static ucs_status_t rndv(void *arg, unsigned, uint64_t tag, const void *hdr,
                             unsigned length, uint64_t remote, size_t size,
                             const void *rkey)
    {
        dcx_loop *self = (dcx_loop *)arg;

        return self->on_rndv ?
                   self->on_rndv(tag, hdr, length, remote, size, rkey) :
                   UCS_OK;
    }

    static ucs_status_t count(void *arg, void *, size_t, unsigned)
    {
        ++*(unsigned *)arg;
        return UCS_OK;
    }

    ucs_async_context_t *m_async = NULL;
    uct_component_h m_component  = NULL;
    uct_md_h m_md                = NULL;
    std::vector<uint8_t> m_dev_addr, m_iface_addr;
};

#endif
