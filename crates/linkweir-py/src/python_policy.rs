// SPDX-License-Identifier: BSD-3-Clause
//! Policies that are Python classes. `linkweir.own` reads a class and says what it declares; here it is asked.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;

use linkweir_core::{
    in_range, refused, Broken, Declaration, Fault, Maker, Param, Pick, Policy, Queue, Stat, Unit,
    Verdict, Victim, View,
};
use linkweir_user::Watched;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::PyTraverseError;

/// A queue as a policy sees it. Nothing of it can be written.
#[pyclass(name = "Queue", module = "linkweir._native")]
#[derive(Default)]
pub struct ShownQueue {
    queue: Queue,
}

#[pymethods]
impl ShownQueue {
    /// Packets that wait.
    #[getter]
    fn backlog_pkts(&self) -> u32 {
        self.queue.backlog_pkts
    }

    /// Bytes that wait.
    #[getter]
    fn backlog_bytes(&self) -> u64 {
        self.queue.backlog_bytes
    }

    /// Length of the first packet, bytes; None if the queue is empty.
    #[getter]
    fn head_bytes(&self) -> Option<u32> {
        (self.queue.backlog_pkts > 0).then_some(self.queue.head_bytes)
    }

    /// When the first packet arrived, ns; None if the queue is empty.
    #[getter]
    fn head_arrival_ns(&self) -> Option<u64> {
        (self.queue.backlog_pkts > 0).then_some(self.queue.head_arrival_ns)
    }

    /// Rate of the queue's channel, bit/s; 0: blocked.
    #[getter]
    fn rate_bps(&self) -> u64 {
        self.queue.rate_bps
    }

    /// Whether its head may be sent: a packet waits, and the channel is not blocked.
    #[getter]
    fn ready(&self) -> bool {
        self.queue.backlog_pkts > 0 && self.queue.rate_bps > 0
    }
}

/// What a policy sees.
#[pyclass(name = "View", module = "linkweir._native")]
pub struct ShownView {
    /// Time now, ns.
    #[pyo3(get)]
    now_ns: u64,
    /// Capacity of the link as it was reported, bit/s.
    #[pyo3(get)]
    link_bps: u64,
    queues: Py<PyTuple>,
}

#[pymethods]
impl ShownView {
    /// The queues, in the order of the classes.
    #[getter]
    fn queues(&self, py: Python<'_>) -> Py<PyTuple> {
        self.queues.clone_ref(py)
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.queues)
    }
}

/// Makes policies of a class.
pub struct PythonMaker {
    /// How messages call it.
    shown: String,
    declaration: &'static Declaration,
    /// Makes a policy from a view, parameters and those of the classes.
    make: Py<PyAny>,
}

impl fmt::Debug for PythonMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonMaker")
            .field("class", &self.shown)
            .finish_non_exhaustive()
    }
}

impl PythonMaker {
    /// The class of a file with this content.
    pub fn new(file: &Path, bytes: &[u8], class: &str) -> Result<PythonMaker, String> {
        Python::attach(|py| {
            let described = py
                .import("linkweir.own")?
                .call_method1("describe", (file.display().to_string(), bytes, class))?;
            let described: &Bound<'_, PyDict> = described.cast()?;
            let declaration = declaration(described)?;
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            Ok(PythonMaker {
                shown: format!("{file}:{class}"),
                declaration: Box::leak(Box::new(declaration)),
                make: need(described, "make")?.unbind(),
            })
        })
        .map_err(|error: PyErr| Python::attach(|py| error.value(py).to_string()))
    }
}

impl Maker for PythonMaker {
    fn declaration(&self) -> &'static Declaration {
        self.declaration
    }

    fn check(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        in_range(self.declaration, view, params, qparams)?;
        // A class refuses values where it is made.
        self.make(view, params, qparams).map(drop)
    }

    fn start(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<Box<dyn Policy + Send>, Fault> {
        let policy = self.make(view, params, qparams)?;
        Ok(Box::new(Watched::new(policy, self.shown.clone())))
    }
}

impl PythonMaker {
    fn make(
        &self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<PythonPolicy, Fault> {
        Python::attach(|py| self.make_with(py, view, params, qparams)).map_err(|error| {
            let what = Python::attach(|py| told(py, &error));
            let what = format!("{}: __init__() refuses these values: {what}", self.shown);
            refused(self.declaration, Some(&what), None, None, params, qparams)
        })
    }

    fn make_with(
        &self,
        py: Python<'_>,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> PyResult<PythonPolicy> {
        let queues: Vec<Py<ShownQueue>> = view
            .queues
            .iter()
            .map(|queue| Py::new(py, ShownQueue { queue: *queue }))
            .collect::<PyResult<_>>()?;
        let tuple = PyTuple::new(py, queues.iter().map(|queue| queue.clone_ref(py)))?;
        let shown = ShownView {
            now_ns: view.now_ns,
            link_bps: view.link_bps,
            queues: tuple.unbind(),
        };
        let shown = Py::new(py, shown)?;
        let declared = self.declaration;
        let rows = qparams.chunks(declared.qparams.len().max(1));
        let classes: Vec<Bound<'_, PyDict>> = (0..view.queues.len())
            .zip(rows.chain(std::iter::repeat(&[][..])))
            .map(|(_, row)| values(py, &declared.qparams, row))
            .collect::<PyResult<_>>()?;
        let arguments = (&shown, values(py, &declared.params, params)?, classes);
        let object = self.make.bind(py).call1(arguments)?;
        let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            object
                .getattr_opt(name)
                .map(|found| found.map(Bound::unbind))
        };
        Ok(PythonPolicy {
            name: self.shown.clone(),
            pick: method("pick")?.ok_or_else(|| PyValueError::new_err("has no method pick"))?,
            enqueued: method("enqueued")?,
            sent: method("sent")?,
            dropped: method("dropped")?,
            rated: method("rated")?,
            victim: method("victim")?,
            leaving: method("leaving")?,
            expired: method("expired")?,
            observe: method("observe")?,
            view: shown,
            queues,
            known: RefCell::new(view.queues.to_vec()),
        })
    }
}

/// Values by the names of their parameters; None where one was not given.
fn values<'py>(py: Python<'py>, params: &[Param], row: &[u64]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (param, &value) in params.iter().zip(row) {
        let word = usize::try_from(value)
            .ok()
            .and_then(|at| param.choices.get(at));
        match word {
            _ if value == linkweir_core::UNSET => dict.set_item(param.name, py.None())?,
            Some(word) if param.unit == Unit::Choice => dict.set_item(param.name, word)?,
            _ => dict.set_item(param.name, value)?,
        }
    }
    Ok(dict)
}

/// A running policy.
struct PythonPolicy {
    name: String,
    pick: Py<PyAny>,
    enqueued: Option<Py<PyAny>>,
    sent: Option<Py<PyAny>>,
    dropped: Option<Py<PyAny>>,
    rated: Option<Py<PyAny>>,
    victim: Option<Py<PyAny>>,
    leaving: Option<Py<PyAny>>,
    expired: Option<Py<PyAny>>,
    observe: Option<Py<PyAny>>,
    view: Py<ShownView>,
    queues: Vec<Py<ShownQueue>>,
    /// The queues as Python knows them.
    known: RefCell<Vec<Queue>>,
}

impl PythonPolicy {
    /// Shows the view, calls a method and reads its answer; what goes wrong ends the run.
    fn call<T>(
        &self,
        view: &View<'_>,
        call: &str,
        work: impl FnOnce(Python<'_>, &Py<ShownView>) -> PyResult<T>,
    ) -> T {
        let result = Python::attach(|py| {
            self.show(py, view);
            work(py, &self.view).map_err(|error| told(py, &error))
        });
        result.unwrap_or_else(|what| {
            let at_s = view.now_ns as f64 / 1e9;
            Broken(format!("{}: {call}() at {at_s} s: {what}", self.name)).end_run()
        })
    }

    fn show(&self, py: Python<'_>, view: &View<'_>) {
        let mut shown = self.view.borrow_mut(py);
        shown.now_ns = view.now_ns;
        shown.link_bps = view.link_bps;
        let mut known = self.known.borrow_mut();
        for ((known, now), shown) in known.iter_mut().zip(view.queues).zip(&self.queues) {
            if known != now {
                *known = *now;
                shown.borrow_mut(py).queue = *now;
            }
        }
    }

    fn event(&self, method: Option<&Py<PyAny>>, view: &View<'_>, call: &str, q: usize, bytes: u32) {
        if let Some(method) = method {
            self.call(view, call, |py, shown| {
                method.call1(py, (shown, q, bytes)).map(drop)
            });
        }
    }
}

impl Policy for PythonPolicy {
    fn pick(&mut self, view: &View<'_>) -> Pick {
        self.call(view, "pick", |py, shown| {
            let answer = self.pick.call1(py, (shown,))?;
            let answer = answer.bind(py);
            if answer.is_none() {
                return Ok(Pick::Nothing { retry_ns: None });
            }
            if let Ok(queue) = answer.extract() {
                return Ok(Pick::Queue(queue));
            }
            match answer.extract::<(Option<usize>, u64)>() {
                // The last time there is, as in C, is no time.
                Ok((None, retry_ns)) => Ok(Pick::Nothing {
                    retry_ns: (retry_ns != u64::MAX).then_some(retry_ns),
                }),
                _ => Err(wrong(
                    answer,
                    "a queue's number, None, or (None, time in ns to ask again)",
                )),
            }
        })
    }

    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.event(self.enqueued.as_ref(), view, "enqueued", q, bytes);
    }

    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.event(self.sent.as_ref(), view, "sent", q, bytes);
    }

    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.event(self.dropped.as_ref(), view, "dropped", q, bytes);
    }

    fn rated(&mut self, view: &View<'_>) {
        if let Some(rated) = &self.rated {
            self.call(view, "rated", |py, shown| {
                rated.call1(py, (shown,)).map(drop)
            });
        }
    }

    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let victim = self.victim.as_ref()?;
        self.call(view, "victim", |py, shown| {
            let answer = victim.call1(py, (shown, q, bytes))?;
            let answer = answer.bind(py);
            if answer.is_none() {
                return Ok(None);
            }
            if let Ok(queue) = answer.extract() {
                return Ok(Some(Victim { queue, head: false }));
            }
            match answer.extract::<(usize, String)>() {
                Ok((queue, end)) if end == "head" => Ok(Some(Victim { queue, head: true })),
                _ => Err(wrong(
                    answer,
                    "a queue's number, (number, \"head\") or None",
                )),
            }
        })
    }

    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let Some(leaving) = &self.leaving else {
            return Verdict::Pass;
        };
        self.call(view, "leaving", |py, shown| {
            let answer = leaving.call1(py, (shown, q, ecn))?;
            let answer = answer.bind(py);
            let word = answer.cast::<PyString>().map(|word| word.to_string());
            match word.as_deref() {
                Ok("pass") => Ok(Verdict::Pass),
                Ok("mark") => Ok(Verdict::Mark),
                Ok("drop") => Ok(Verdict::Drop),
                _ => Err(wrong(answer, "\"pass\", \"mark\" or \"drop\"")),
            }
        })
    }

    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let Some(expired) = &self.expired else {
            return false;
        };
        self.call(view, "expired", |py, shown| {
            expired.call1(py, (shown, q))?.is_truthy(py)
        })
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        let Some(observe) = self.observe.as_ref().filter(|_| !values.is_empty()) else {
            return;
        };
        let shown = self.call(view, "observe", |py, shown| {
            let answer = observe.call1(py, (shown, q))?;
            let answer = answer.bind(py);
            let rows: Vec<i64> = answer
                .extract()
                .map_err(|_| wrong(answer, "a whole number for each entry of stats"))?;
            if rows.len() == values.len() {
                Ok(rows)
            } else {
                Err(wrong(answer, "a whole number for each entry of stats"))
            }
        });
        values.copy_from_slice(&shown);
    }
}

fn wrong(answer: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let shown = answer
        .repr()
        .map(|text| text.to_string())
        .unwrap_or_default();
    let mut shown: String = shown.chars().take(60).collect();
    if shown.is_empty() {
        shown.push_str("what cannot be shown");
    }
    PyValueError::new_err(format!("returned {shown}; it must return {expected}"))
}

/// An exception as one line: what it is, and where it was raised.
fn told(py: Python<'_>, error: &PyErr) -> String {
    let value = error.value(py);
    if let Some(trace) = error.traceback(py) {
        // The line is left out if this fails.
        let _ = value.setattr("__traceback__", trace);
    }
    let told = py
        .import("linkweir.own")
        .and_then(|own| own.call_method1("told", (value,)))
        .and_then(|text| text.extract::<String>());
    told.unwrap_or_else(|_| error.to_string())
}

// --- What a class declares ---------------------------------------------------------------------------------------------

fn need<'py>(dict: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    dict.get_item(key)?
        .ok_or_else(|| PyValueError::new_err(format!("no {key}")))
}

/// A text that lives as long as the program, as a declaration needs it.
fn text(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<&'static str> {
    let text: String = need(dict, key)?.extract()?;
    Ok(Box::leak(text.into_boxed_str()))
}

fn unit(dict: &Bound<'_, PyDict>) -> PyResult<Unit> {
    let name: String = need(dict, "unit")?.extract()?;
    Ok(match name.as_str() {
        "rate" => Unit::Bps,
        "time" => Unit::Ns,
        "size" => Unit::Bytes,
        "bits" => Unit::Bits,
        "packets" => Unit::Pkts,
        "fraction" => Unit::Ppm,
        "choice" => Unit::Choice,
        _ => Unit::Number,
    })
}

fn params(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<Vec<Param>> {
    let rows = need(dict, key)?;
    let rows: &Bound<'_, PyList> = rows.cast()?;
    rows.iter()
        .map(|row| {
            let row: &Bound<'_, PyDict> = row.cast()?;
            let choices: Vec<String> = need(row, "choices")?.extract()?;
            let default: Option<u64> = need(row, "default")?.extract()?;
            Ok(Param {
                name: text(row, "name")?,
                help: text(row, "help")?,
                unit: unit(row)?,
                choices: choices
                    .into_iter()
                    .map(|word| &*Box::leak(word.into_boxed_str()))
                    .collect(),
                min: need(row, "min")?.extract()?,
                max: need(row, "max")?.extract()?,
                default: default.unwrap_or(linkweir_core::UNSET),
                at_init: false,
            })
        })
        .collect()
}

fn declaration(dict: &Bound<'_, PyDict>) -> PyResult<Declaration> {
    let rows = need(dict, "stats")?;
    let rows: &Bound<'_, PyList> = rows.cast()?;
    let stats = rows.iter().map(|row| {
        let row: &Bound<'_, PyDict> = row.cast()?;
        Ok(Stat {
            name: text(row, "name")?,
            help: text(row, "help")?,
            unit: unit(row)?,
        })
    });
    Ok(Declaration {
        name: text(dict, "name")?,
        help: text(dict, "help")?,
        stats: stats.collect::<PyResult<_>>()?,
        params: params(dict, "params")?,
        qparams: params(dict, "class_params")?,
        max_queues: linkweir_core::MAX_QUEUES,
        ignores_rates: need(dict, "ignores_rates")?.extract()?,
        sorted_by_ecn: false,
        shared_limit: None,
    })
}
