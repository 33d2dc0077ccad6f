//! Where in the user's code a call was made.

use std::collections::HashMap;

use pyo3::ffi;
use pyo3::prelude::*;
use veracity::trace::SiteId;

/// Whose code a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user, or a library that is not torch.
    User,
    /// Python's own library, NumPy.
    Plumbing,
    /// torch.
    Torch,
    /// The recorder, and the parts of torch that only pass calls on.
    Recorder,
    /// Python's module `copy`, which hands memory over without looking at it.
    Copying,
}

/// A place in the user's code, and who asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) id: SiteId,
    /// Whose code made the call.
    pub(super) caller: Owner,
}

/// Places seen so far.
pub(super) struct Sites {
    known: HashMap<(usize, i32), SiteId>,
    locations: Vec<String>,
    owners: HashMap<usize, Owner>,
    /// Code objects whose address is a key must not be freed.
    held: Vec<Py<PyAny>>,
    owner_of_file: Py<PyAny>,
    /// Places together with the callers that led there.
    known_trails: HashMap<Vec<(usize, i32)>, SiteId>,
    /// What Python keeps of such a place.
    trails: HashMap<SiteId, Py<PyAny>>,
    keep_trail: Py<PyAny>,
}

/// How many frames make a place with its callers: deeper ones do not tell places apart.
const TRAIL: usize = 24;

impl Sites {
    /// `owner_of_file` says for a file name: 0 user, 1 plumbing, 2 torch, 3 recorder,
    /// 4 `copy`. `keep_trail` is given the innermost frame of the user's, and says what to keep.
    pub(super) fn new(owner_of_file: Py<PyAny>, keep_trail: Py<PyAny>) -> Self {
        Self {
            known: HashMap::new(),
            locations: vec!["unknown place".to_owned()],
            owners: HashMap::new(),
            held: Vec::new(),
            owner_of_file,
            known_trails: HashMap::new(),
            trails: HashMap::new(),
            keep_trail,
        }
    }

    /// `file:line`.
    pub(super) fn location(&self, site: SiteId) -> &str {
        &self.locations[site.0 as usize]
    }

    /// The innermost frame of the user's own code.
    pub(super) fn here(&mut self, py: Python<'_>) -> PyResult<Site> {
        let mut frame = current_frame(py);
        let mut caller = None;
        let mut outermost = None;
        while let Some(current) = frame {
            let code = current.getattr(pyo3::intern!(py, "f_code"))?;
            let owner = self.owner(&code)?;
            if owner != Owner::Recorder {
                caller.get_or_insert(owner);
            }
            if owner == Owner::User {
                let id = self.intern(&current, &code)?;
                return Ok(Site { id, caller: caller.unwrap_or(owner) });
            }
            let back = current.getattr(pyo3::intern!(py, "f_back"))?;
            outermost = Some((current, code));
            frame = (!back.is_none()).then_some(back);
        }
        let id = match outermost {
            Some((frame, code)) => self.intern(&frame, &code)?,
            None => SiteId(0),
        };
        Ok(Site { id, caller: caller.unwrap_or(Owner::Recorder) })
    }

    /// The innermost frame of the user's own code as a place of its own for each way that leads
    /// there: what becomes of a value depends on who called.
    pub(super) fn here_with_callers(&mut self, py: Python<'_>) -> PyResult<Site> {
        let place = self.here(py)?;
        let mut key = Vec::with_capacity(TRAIL);
        let mut user = None;
        let mut frame = current_frame(py);
        while let Some(current) = frame.take_if(|_| key.len() < TRAIL) {
            let code = current.getattr(pyo3::intern!(py, "f_code"))?;
            if user.is_none() && self.owner(&code)? == Owner::User {
                user = Some(current.clone());
            }
            if user.is_some() {
                let instruction = current.getattr(pyo3::intern!(py, "f_lasti"))?.extract()?;
                self.owner(&code)?; // holds it
                key.push((code.as_ptr() as usize, of_call(&code, instruction)?));
            }
            let back = current.getattr(pyo3::intern!(py, "f_back"))?;
            frame = (!back.is_none()).then_some(back);
        }
        let Some(user) = user else { return Ok(place) };
        if let Some(site) = self.known_trails.get(&key) {
            return Ok(Site { id: *site, caller: place.caller });
        }
        let trail = self.keep_trail.bind(py).call1((user,))?;
        let id = SiteId(u32::try_from(self.locations.len()).unwrap_or(0));
        self.locations.push(self.location(place.id).to_owned());
        self.known_trails.insert(key, id);
        self.trails.insert(id, trail.unbind());
        Ok(Site { id, caller: place.caller })
    }

    /// What Python kept of a place with its callers.
    pub(super) fn trail(&self, py: Python<'_>, site: SiteId) -> Option<Py<PyAny>> {
        self.trails.get(&site).map(|trail| trail.clone_ref(py))
    }

    fn owner(&mut self, code: &Bound<'_, PyAny>) -> PyResult<Owner> {
        let key = code.as_ptr() as usize;
        if let Some(owner) = self.owners.get(&key) {
            return Ok(*owner);
        }
        let py = code.py();
        let file = code.getattr(pyo3::intern!(py, "co_filename"))?;
        let owner = match self.owner_of_file.bind(py).call1((file,))?.extract::<u8>()? {
            0 => Owner::User,
            1 => Owner::Plumbing,
            2 => Owner::Torch,
            4 => Owner::Copying,
            _ => Owner::Recorder,
        };
        self.held.push(code.clone().unbind());
        self.owners.insert(key, owner);
        Ok(owner)
    }

    fn intern(&mut self, frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>) -> PyResult<SiteId> {
        let py = frame.py();
        let instruction: i32 = frame.getattr(pyo3::intern!(py, "f_lasti"))?.extract()?;
        let key = (code.as_ptr() as usize, instruction);
        if let Some(site) = self.known.get(&key) {
            return Ok(*site);
        }
        let of_call = (key.0, of_call(code, instruction)?);
        if let Some(site) = self.known.get(&of_call).copied() {
            self.known.insert(key, site);
            return Ok(site);
        }
        let file: String = code.getattr(pyo3::intern!(py, "co_filename"))?.extract()?;
        let line: Option<u32> = frame.getattr(pyo3::intern!(py, "f_lineno"))?.extract()?;
        let site = SiteId(u32::try_from(self.locations.len()).unwrap_or(0));
        self.locations.push(format!("{file}:{}", line.unwrap_or(0)));
        self.known.insert(key, site);
        self.known.insert(of_call, site);
        Ok(site)
    }
}

/// Python 3.11 makes a call in two instructions, `PRECALL` and `CALL`. Once it has specialised a
/// call of a builtin, `PRECALL` does all of it, so that one call has two places.
const PRECALL: u8 = 166;
const PRECALL_SIZE: i32 = 4;

/// The place of a call: the same before it was specialised and after.
fn of_call(code: &Bound<'_, PyAny>, instruction: i32) -> PyResult<i32> {
    let py = code.py();
    let version = py.version_info();
    let Ok(at) = usize::try_from(instruction) else { return Ok(instruction) };
    if (version.major, version.minor) != (3, 11) {
        return Ok(instruction);
    }
    let instructions = code.getattr(pyo3::intern!(py, "co_code"))?;
    let is_first = instructions.get_item(at)?.extract::<u8>()? == PRECALL;
    Ok(if is_first { instruction + PRECALL_SIZE } else { instruction })
}

#[expect(unsafe_code, reason = "PyO3 has no safe way to the current frame")]
fn current_frame(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the interpreter is attached; the result is a borrowed reference or null.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}
