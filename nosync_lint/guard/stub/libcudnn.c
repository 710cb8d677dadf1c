/* What cuDNN must know of recurrent layers: how large their weights are, and where each lies. Torch lays its parameters
 * over them before anything runs. Matrices come first, layer by layer, then biases. */

#include <stdlib.h>

#include "stub.h"

enum { LSTM = 2, GRU = 3, DOUBLE = 1, HALF = 2, BFLOAT16 = 9, BIDIRECTIONAL = 1 };
enum { NO_BIAS = 0, INPUT_BIAS = 1, BOTH_BIASES = 2 };

typedef struct {
    size_t element, gates, directions, layers, inputs, hidden, outputs; /* outputs: hidden, or what it is projected to */
    int bias;
} Recurrent;

typedef struct {
    int type, dimensions[3];
} Tensor;

static Status make(void **descriptor, size_t bytes) {
    enum { ALLOCATION_FAILED = 1003 };
    *descriptor = calloc(1, bytes);
    return *descriptor != NULL ? SUCCESS : ALLOCATION_FAILED;
}

Status cudnnCreateTensorDescriptor(void **tensor) { return make(tensor, sizeof(Tensor)); }
Status cudnnCreateRNNDescriptor(void **recurrent) { return make(recurrent, sizeof(Recurrent)); }

Status cudnnDestroyTensorDescriptor(void *tensor) {
    free(tensor);
    return SUCCESS;
}

Status cudnnDestroyRNNDescriptor(void *recurrent) {
    free(recurrent);
    return SUCCESS;
}

Status cudnnSetRNNDescriptor_v8(Recurrent *recurrent, int algorithm, int cell, int bias, int direction, int input_mode,
                                int type, int precision, int math, int inputs, int hidden, int projected, int layers) {
    (void)algorithm, (void)input_mode, (void)precision, (void)math;
    *recurrent = (Recurrent){
        .element = type == DOUBLE ? 8 : type == HALF || type == BFLOAT16 ? 2 : 4,
        .gates = cell == LSTM ? 4 : cell == GRU ? 3 : 1,
        .directions = direction == BIDIRECTIONAL ? 2 : 1,
        .layers = (size_t)layers,
        .inputs = (size_t)inputs,
        .hidden = (size_t)hidden,
        .outputs = (size_t)(projected > 0 ? projected : hidden),
        .bias = bias,
    };
    return SUCCESS;
}

static size_t inputs_of(const Recurrent *all, size_t layer) {
    return layer < all->directions ? all->inputs : all->outputs * all->directions;
}

/* Elements of the matrices of one layer in one direction: for the input, for what recurs, and for the projection. */
static size_t matrices(const Recurrent *all, size_t layer) {
    size_t projection = all->outputs != all->hidden ? all->outputs * all->hidden : 0;
    return all->gates * all->hidden * (inputs_of(all, layer) + all->outputs) + projection;
}

static size_t biases(const Recurrent *all) {
    size_t sides = all->bias == NO_BIAS ? 0 : all->bias == BOTH_BIASES ? 2 : 1;
    return sides * all->gates * all->hidden;
}

static size_t all_matrices(const Recurrent *all, size_t layers) {
    size_t sum = 0;
    for (size_t layer = 0; layer < layers; layer++)
        sum += matrices(all, layer);
    return sum;
}

Status cudnnGetRNNWeightSpaceSize(void *handle, const Recurrent *all, size_t *bytes) {
    size_t layers = all->layers * all->directions;
    (void)handle;
    *bytes = all->element * (all_matrices(all, layers) + layers * biases(all));
    return SUCCESS;
}

/* Callers may ask for less than all. */
static void tell(Tensor *tensor, char **address, char *at, int rows, int columns) {
    if (tensor != NULL)
        *tensor = at != NULL ? (Tensor){.dimensions = {1, rows, columns}} : (Tensor){0};
    if (address != NULL)
        *address = at;
}

Status cudnnGetRNNWeightParams(void *handle, const Recurrent *all, int layer, size_t bytes, char *weights, int number,
                               Tensor *matrix, char **matrix_at, Tensor *bias, char **bias_at) {
    size_t at = all_matrices(all, (size_t)layer), gate = (size_t)number, inputs = inputs_of(all, (size_t)layer);
    int rows = (int)all->hidden, columns = (int)(gate < all->gates ? inputs : all->outputs);
    (void)handle, (void)bytes;
    if (gate < all->gates) {
        at += gate * all->hidden * inputs;
    } else {
        at += all->gates * all->hidden * inputs + (gate - all->gates) * all->hidden * all->outputs;
        if (gate == 2 * all->gates) {
            rows = (int)all->outputs;
            columns = (int)all->hidden;
        }
    }
    tell(matrix, matrix_at, weights + all->element * at, rows, columns);

    size_t of_layer = all_matrices(all, all->layers * all->directions) + (size_t)layer * biases(all);
    size_t first = all->bias == INPUT_BIAS || all->bias == BOTH_BIASES ? 0 : all->gates;
    bool has_bias = gate >= first && (gate - first) * all->hidden < biases(all);
    tell(bias, bias_at, has_bias ? weights + all->element * (of_layer + (gate - first) * all->hidden) : NULL, rows, 1);
    return SUCCESS;
}

Status cudnnGetTensorNdDescriptor(const Tensor *tensor, int wanted, int *type, int *count, int dimensions[],
                                  int strides[]) {
    int stride = 1;
    *type = tensor->type;
    *count = 3;
    for (int at = 2; at >= 0; at--) {
        if (at < wanted) {
            dimensions[at] = tensor->dimensions[at];
            strides[at] = stride;
        }
        stride *= tensor->dimensions[at];
    }
    return SUCCESS;
}
