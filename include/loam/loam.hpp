/* loam/loam.hpp - owners for C++: a unique_ptr per object, and nothing else.
 *
 *     loam_model *raw;
 *     if (loam_model_open(&raw, path, nullptr, &err) != LOAM_OK) ...
 *     loam::model model(raw);
 *
 * Every object of every header that has an owner has one here; what is released together with its owner (loam_node, the
 * tokenizer of a model) has none. Needs C++11. A writer that is destroyed gives up; closing it takes it out of its owner:
 * loam_gguf_writer_close(writer.release(), &err). */
#ifndef LOAM_LOAM_HPP
#define LOAM_LOAM_HPP

#include <memory>

#include "loam/budget.h"
#include "loam/data.h"
#include "loam/device.h"
#include "loam/evaluate.h"
#include "loam/gguf.h"
#include "loam/imatrix.h"
#include "loam/job.h"
#include "loam/loam.h"
#include "loam/tensor.h"
#include "loam/train.h"

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
using tokenizer = owner<loam_tokenizer, loam_tokenizer_free>; // of a vocabulary file; not the one a model owns
using detokenizer = owner<loam_detokenizer, loam_detokenizer_free>;
using vocab_builder = owner<loam_vocab_builder, loam_vocab_builder_free>;
using trainer = owner<loam_trainer, loam_trainer_free>;
using dataset = owner<loam_dataset, loam_dataset_free>;
using opt = owner<loam_opt, loam_opt_free>;
using opt_result = owner<loam_opt_result, loam_opt_result_free>;
using tokens = owner<loam_token, loam_tokens_free>;
using gguf = owner<loam_gguf, loam_gguf_free>;
using gguf_builder = owner<loam_gguf_builder, loam_gguf_builder_free>;
using gguf_writer = owner<loam_gguf_writer, loam_gguf_writer_cancel>;
using imatrix = owner<loam_imatrix, loam_imatrix_free>;
using kl = owner<loam_kl, loam_kl_free>;
using kl_base = owner<loam_kl_base, loam_kl_base_free>;
using kl_writer = owner<loam_kl_writer, loam_kl_writer_cancel>;
using data = owner<loam_data, loam_data_free>;
using job = owner<loam_job, loam_job_free>;
using budget = owner<loam_budget, loam_budget_free>;
using graph = owner<loam_graph, loam_graph_free>;
using devices = owner<loam_devices, loam_devices_free>;
using buffer = owner<loam_buffer, loam_buffer_free>;
using queue = owner<loam_queue, loam_queue_free>;
using event = owner<loam_event, loam_event_free>;
using sched = owner<loam_sched, loam_sched_free>;
using places = owner<loam_places, loam_places_free>;

} // namespace loam

#endif
