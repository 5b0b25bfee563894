typedef half float16_t;
typedef bfloat bfloat16_t;
