/* C interface of the MPSGraph stand-in: who records and runs graphs, and what tensors and their data are. */
#ifndef PORTER_MPSGRAPH_H
#define PORTER_MPSGRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PORTER_MAX_RANK 16

/* Runs a graph: `feeds` and `results` are dictionaries of MPSGraphTensor to MPSGraphTensorData.
 * Nonzero: it failed, and has called porter_set_error(). */
typedef int (*porter_run_graph)(void* graph, void* feeds, void* results);
/* A graph is no more. */
typedef void (*porter_drop_graph)(void* graph);

void porter_set_graphs(porter_run_graph run, porter_drop_graph drop);

/* A tensor of a graph, which keeps it: result `output` of node `node`. A rank of -1: the shape is unknown. */
void* porter_make_tensor(void* graph, int64_t node, int64_t output, uint32_t data_type, const int64_t* shape, int rank);
int64_t porter_tensor_node(const void* tensor, int64_t* output);

/* Memory laid out as an array: element (i, j, ...) is at address + i * strides[0] + j * strides[1] + ... elements. */
struct porter_array {
  void* address; /* of the device */
  uint32_t data_type;
  int32_t rank;
  int64_t shape[PORTER_MAX_RANK];
  int64_t strides[PORTER_MAX_RANK];
};
/* What an MPSGraphTensorData, an MPSNDArray or an MPSMatrix holds. */
void porter_array_of(const void* data, struct porter_array* array);

/* The value of a property of a descriptor, by its name: an integer type, a float, or an object. 0 if it has none. */
int porter_property(const void* object, const char* name, int64_t* integer, double* real, void** value);

#ifdef __cplusplus
}
#endif
#endif
