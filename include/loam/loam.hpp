/* loam/loam.hpp - owners for C++: a unique_ptr per object, and nothing else.
 *
 *     loam_model *raw;
 *     if (loam_model_open(&raw, path, nullptr, &err) != LOAM_OK) ...
 *     loam::model model(raw);
 */
#ifndef LOAM_LOAM_HPP
#define LOAM_LOAM_HPP

#include <memory>

#include "loam/device.h"
#include "loam/loam.h"

namespace loam {

template <typename T, void (*release)(T *)> struct deleter {
    void operator()(T *object) const noexcept { release(object); }
};
template <typename T, void (*release)(T *)> using owner = std::unique_ptr<T, deleter<T, release>>;

using model = owner<loam_model, loam_model_free>;
using context = owner<loam_context, loam_context_free>;
using pool = owner<loam_pool, loam_pool_free>;
using adapter = owner<loam_adapter, loam_adapter_free>;
using sampler = owner<loam_sampler, loam_sampler_free>;
using detokenizer = owner<loam_detokenizer, loam_detokenizer_free>;
using vocab_builder = owner<loam_vocab_builder, loam_vocab_builder_free>;
using tokens = owner<loam_token, loam_tokens_free>;

/* The lower tier, unstable. */
using graph = owner<loam_graph, loam_graph_free>;
using devices = owner<loam_devices, loam_devices_free>;
using buffer = owner<loam_buffer, loam_buffer_free>;
using queue = owner<loam_queue, loam_queue_free>;
using event = owner<loam_event, loam_event_free>;
using sched = owner<loam_sched, loam_sched_free>;

} // namespace loam

#endif
