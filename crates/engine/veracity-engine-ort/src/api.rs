//! The C interface of ONNX Runtime with owned objects, and its failures as values.
#![expect(unsafe_code, reason = "every function of the library is foreign")]

use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;

use ort_sys::{OrtApi, OrtErrorCode, OrtStatus, OrtStatusPtr};

/// The function table of the loaded library.
pub(crate) type Api = &'static OrtApi;

/// What the library says about operators that it does not know. It gives them no code of their own.
const UNKNOWN_OPERATOR: [&str; 2] = ["No Op registered for", "is not a registered function/op"];

/// What the library says, in its newer and older versions, when it was about to write another shape
/// than the one bound.
const OTHER_SHAPE: [&str; 2] = ["computed output shape", "shape verification failed"];

/// Why the library did not do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What the library says.
    pub(crate) message: String,
    /// What kind of failure it is.
    pub(crate) kind: FailureKind,
}

/// The kinds of failure that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The library lacks a feature.
    Unsupported,
    /// An output has another shape than the memory for it.
    OtherShape,
    /// Anything else.
    Other,
}

impl Failure {
    /// A failure that the library did not report, but that its answer amounts to.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: FailureKind::Other }
    }

    /// An output that does not fit.
    pub(crate) fn other_shape(message: impl Into<String>) -> Self {
        Self { message: message.into(), kind: FailureKind::OtherShape }
    }
}

/// The result of a call into the library.
pub(crate) type Called<T> = Result<T, Failure>;

/// Turns a status into a result and frees it.
#[inline]
pub(crate) fn check(api: Api, status: OrtStatusPtr) -> Called<()> {
    match NonNull::new(status.0) {
        None => Ok(()),
        Some(status) => Err(failure(api, status)),
    }
}

#[cold]
fn failure(api: Api, status: NonNull<OrtStatus>) -> Failure {
    // A newer library may answer a code that the Rust enum does not have, so it is read as the
    // plain number that it is in C.
    // SAFETY: the enum is `repr(i32)`: the two function types pass and return the same things.
    let code_of = unsafe {
        std::mem::transmute::<
            unsafe extern "system" fn(*const OrtStatus) -> OrtErrorCode,
            unsafe extern "system" fn(*const OrtStatus) -> i32,
        >(api.GetErrorCode)
    };
    // SAFETY: the status is live, and its text lives as long; it is copied before the release.
    unsafe {
        let code = code_of(status.as_ptr());
        let message = text((api.GetErrorMessage)(status.as_ptr()));
        (api.ReleaseStatus)(status.as_ptr());
        Failure { kind: kind_of(code, &message), message }
    }
}

fn kind_of(code: i32, message: &str) -> FailureKind {
    let says = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if code == OrtErrorCode::ORT_NOT_IMPLEMENTED as i32 || says(&UNKNOWN_OPERATOR) {
        FailureKind::Unsupported
    } else if says(&OTHER_SHAPE) {
        FailureKind::OtherShape
    } else {
        FailureKind::Other
    }
}

/// A copy of a C text.
///
/// # Safety
/// `pointer` is null or leads to a NUL-terminated text.
pub(crate) unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: passed on to the caller.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim_end().to_owned()
}

/// A copy of a text that the library allocated for us, which is freed.
///
/// # Safety
/// `fill` writes a NUL-terminated text of the given allocator, or fails.
pub(crate) unsafe fn owned_text(
    api: Api,
    fill: impl FnOnce(*mut ort_sys::OrtAllocator, *mut *mut c_char) -> OrtStatusPtr,
) -> Called<CString> {
    let mut allocator = std::ptr::null_mut();
    let mut pointer = std::ptr::null_mut();
    // SAFETY: the default allocator lives as long as the library; the text is freed by the
    // allocator that made it, after it was copied.
    unsafe {
        check(api, (api.GetAllocatorWithDefaultOptions)(&raw mut allocator))?;
        check(api, fill(allocator, &raw mut pointer))?;
        let copy = CStr::from_ptr(pointer).to_owned();
        check(api, (api.AllocatorFree)(allocator, pointer.cast()))?;
        Ok(copy)
    }
}

/// An object of the library that is released when it is dropped.
pub(crate) struct Owned<T> {
    object: NonNull<T>,
    release: unsafe extern "system" fn(*mut T),
}

impl<T> Owned<T> {
    /// Makes an object.
    ///
    /// # Safety
    /// When `make` succeeds, what it wrote is live or null and is to be freed by `release`.
    pub(crate) unsafe fn new(
        api: Api,
        release: unsafe extern "system" fn(*mut T),
        make: impl FnOnce(*mut *mut T) -> OrtStatusPtr,
    ) -> Called<Self> {
        let mut object = std::ptr::null_mut();
        check(api, make(&raw mut object))?;
        match NonNull::new(object) {
            Some(object) => Ok(Self { object, release }),
            None => Err(Failure::other("the library made nothing and reported no error")),
        }
    }

    /// The object, for calls into the library. Valid while `self` lives.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut T {
        self.object.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: by the contract of `new`; nothing else releases it.
        unsafe { (self.release)(self.object.as_ptr()) }
    }
}
