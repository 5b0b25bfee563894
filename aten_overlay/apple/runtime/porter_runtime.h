/* C interface of the Objective-C runtime stand-in: what Python and the other stand-ins ask of it.
 *
 * An object is an `id` of Objective-C; here it is a plain pointer. No function of this header keeps a reference. */
#ifndef PORTER_RUNTIME_H
#define PORTER_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One argument of a message, decoded by the type string of its selector ("Type Encodings", Apple's runtime guide). */
struct porter_argument {
  char type; /* first character of the encoding; '?' for a block */
  union {
    int64_t i;
    uint64_t u;
    double d; /* float arguments too */
    void* p;
  } value;
  const void* memory; /* for '{': the bytes of the struct, until the handler returns */
};

/* Answers a message that no method of the receiver's class does. Nonzero: it failed, and has called
 * porter_set_error(); the sender gets a C++ exception (std::runtime_error) with that text. */
typedef int (*porter_message_handler)(
    void* self, const char* selector, const char* types, size_t count, const struct porter_argument* arguments,
    struct porter_argument* result);

/* Sets who answers for the class of this name and its subclasses; null takes it back. */
void porter_handle_messages(const char* class_name, porter_message_handler handler);

/* The text of the next exception thrown on this thread's behalf. */
void porter_set_error(const char* text);

/* What kind of object it is: string, number, array, dictionary, data, null, nil, class, or the name of its class. */
const char* porter_kind(const void* object);
const char* porter_class_name(const void* object);

const char* porter_string(const void* string);                      /* UTF-8, as long as the object lives */
int porter_number(const void* number, int64_t* integer, double* real); /* 1 if it was made from a floating type */
size_t porter_count(const void* collection);                        /* of an array or a dictionary */
void* porter_at(const void* array, size_t index);
void* porter_key_at(const void* dictionary, size_t index);
void* porter_value_at(const void* dictionary, size_t index);
const void* porter_data(const void* data, size_t* size);

/* New autoreleased objects. */
void* porter_make_string(const char* text);
void* porter_make_integer(int64_t value);
void* porter_make_array(void* const* objects, size_t count);

void* porter_retain(void* object);
void porter_release(void* object);
void* porter_pool_push(void);
void porter_pool_pop(void* pool);

/* Objects alive now, of every class or of one; constants and classes do not count. */
int64_t porter_live_objects(const char* class_name);

#ifdef __cplusplus
}
#endif
#endif
