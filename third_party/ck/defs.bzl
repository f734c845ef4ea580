"""CK_COPTS: the options of code that includes CK's headers."""

# For ck_pr's operations on two words.
CK_MACHINE_COPTS = select({
    "//:aarch64": [],
    "//conditions:default": ["-mcx16"],
})

CK_COPTS = CK_MACHINE_COPTS + select({
    "//:tsan": [
        "-include",
        "third_party/ck/ck_pr_tsan.h",
    ],
    "//conditions:default": [],
})
