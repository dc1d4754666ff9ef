"""The compile-time part of C++17's <type_traits>: nvcc gives it to device code, NVRTC only in headers that take it a
second to read. What nvcc refuses in device code (the conversion operators of ``true_type``) is not here either.
"""

from agent.source.lexing import word_set

TYPE_TRAITS = """namespace std {
template <class T, T v> struct integral_constant {
  static constexpr T value = v; using value_type = T; using type = integral_constant; };
template <bool v> using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>; using false_type = bool_constant<false>;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional { using type = T; };
template <class T, class F> struct conditional<false, T, F> { using type = F; };
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class...> using void_t = void;
template <class T> struct remove_const { using type = T; };
template <class T> struct remove_const<const T> { using type = T; };
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> struct remove_volatile { using type = T; };
template <class T> struct remove_volatile<volatile T> { using type = T; };
template <class T> using remove_volatile_t = typename remove_volatile<T>::type;
template <class T> struct remove_cv { using type = remove_const_t<remove_volatile_t<T>>; };
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> struct remove_reference { using type = T; };
template <class T> struct remove_reference<T&> { using type = T; };
template <class T> struct remove_reference<T&&> { using type = T; };
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> struct remove_pointer { using type = T; };
template <class T> struct remove_pointer<T*> { using type = T; };
template <class T> struct remove_pointer<T* const> { using type = T; };
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> struct remove_extent { using type = T; };
template <class T> struct remove_extent<T[]> { using type = T; };
template <class T, decltype(sizeof(0)) N> struct remove_extent<T[N]> { using type = T; };
template <class T> using remove_extent_t = typename remove_extent<T>::type;
template <class T> struct add_const { using type = const T; };
template <class T> using add_const_t = typename add_const<T>::type;
template <class T> struct add_pointer { using type = remove_reference_t<T>*; };
template <class T> using add_pointer_t = typename add_pointer<T>::type;
template <class T, class U> struct is_same : false_type {};
template <class T> struct is_same<T, T> : true_type {};
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> struct is_reference : false_type {};
template <class T> struct is_reference<T&> : true_type {};
template <class T> struct is_reference<T&&> : true_type {};
template <class T> struct cuda_lsp_pointer : false_type {};
template <class T> struct cuda_lsp_pointer<T*> : true_type {};
template <class T> struct is_pointer : cuda_lsp_pointer<remove_cv_t<T>> {};
template <class T> struct is_array : false_type {};
template <class T> struct is_array<T[]> : true_type {};
template <class T, decltype(sizeof(0)) N> struct is_array<T[N]> : true_type {};
template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T, class... U> struct cuda_lsp_one_of : bool_constant<(is_same<remove_cv_t<T>, U>::value || ...)> {};
template <class T> struct is_floating_point : cuda_lsp_one_of<T, float, double, long double> {};
template <class T> struct is_integral : cuda_lsp_one_of<T, bool, char, signed char, unsigned char, wchar_t, char16_t,
  char32_t, short, unsigned short, int, unsigned, long, unsigned long, long long, unsigned long long> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T, bool = is_arithmetic<T>::value> struct is_signed : bool_constant<(T(-1) < T(0))> {};
template <class T> struct is_signed<T, false> : false_type {};
template <class T, bool = is_arithmetic<T>::value> struct is_unsigned : bool_constant<(T(0) < T(-1))> {};
template <class T> struct is_unsigned<T, false> : false_type {};
template <class T> struct is_enum : bool_constant<__is_enum(T)> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class T> struct is_union : bool_constant<__is_union(T)> {};
template <class T> struct is_empty : bool_constant<__is_empty(T)> {};
template <class T> struct is_trivially_copyable : bool_constant<__is_trivially_copyable(T)> {};
template <class T, class U> struct is_base_of : bool_constant<__is_base_of(T, U)> {};
template <class T, class U> struct is_convertible : bool_constant<__is_convertible_to(T, U)> {};
template <class T> struct underlying_type { using type = __underlying_type(T); };
template <class T> using underlying_type_t = typename underlying_type<T>::type;
template <class T> struct make_unsigned {};
#define CUDA_LSP_PAIR(S, U) template <> struct make_unsigned<S> { using type = U; }; \\
template <> struct make_unsigned<U> { using type = U; };
CUDA_LSP_PAIR(signed char, unsigned char) CUDA_LSP_PAIR(short, unsigned short) CUDA_LSP_PAIR(int, unsigned)
CUDA_LSP_PAIR(long, unsigned long) CUDA_LSP_PAIR(long long, unsigned long long)
template <class T> using make_unsigned_t = typename make_unsigned<T>::type;
template <class T> struct cuda_lsp_decay { using type = remove_cv_t<T>; };
template <class T> struct cuda_lsp_decay<T[]> { using type = T*; };
template <class T, decltype(sizeof(0)) N> struct cuda_lsp_decay<T[N]> { using type = T*; };
template <class R, class... A> struct cuda_lsp_decay<R(A...)> { using type = R (*)(A...); };
template <class T> struct decay { using type = typename cuda_lsp_decay<remove_reference_t<T>>::type; };
template <class T> using decay_t = typename decay<T>::type;
#define CUDA_LSP_V(name) template <class T> inline constexpr bool name##_v = name<T>::value;
CUDA_LSP_V(is_const) CUDA_LSP_V(is_reference) CUDA_LSP_V(is_pointer) CUDA_LSP_V(is_array) CUDA_LSP_V(is_void)
CUDA_LSP_V(is_floating_point) CUDA_LSP_V(is_integral) CUDA_LSP_V(is_arithmetic) CUDA_LSP_V(is_signed)
CUDA_LSP_V(is_unsigned) CUDA_LSP_V(is_enum) CUDA_LSP_V(is_class) CUDA_LSP_V(is_union) CUDA_LSP_V(is_empty)
CUDA_LSP_V(is_trivially_copyable)
template <class T, class U> inline constexpr bool is_same_v = is_same<T, U>::value;
template <class T, class U> inline constexpr bool is_base_of_v = is_base_of<T, U>::value;
template <class T, class U> inline constexpr bool is_convertible_v = is_convertible<T, U>::value;
}
"""

TRAITS = frozenset(
    name + suffix
    for name in word_set(
        "integral_constant bool_constant true_type false_type enable_if conditional void_t remove_const "
        "remove_volatile remove_cv remove_reference remove_pointer remove_extent add_const add_pointer is_same "
        "is_const is_reference is_pointer is_array is_void is_floating_point is_integral is_arithmetic is_signed "
        "is_unsigned is_enum is_class is_union is_empty is_trivially_copyable is_base_of is_convertible "
        "underlying_type make_unsigned decay"
    )
    for suffix in ("", "_t", "_v")
)
