// SPDX-License-Identifier: BSD-3-Clause
//! A policy of the C core behind a safe interface.
//!
//! The core promises that a policy touches only its own state block, of the size it asked for, and the queues of the view,
//! whatever their contents. The calls below rely on that. `docs/records/proofs.md` says how much of it is proved: most of
//! it for 1, 2 and 3 queues and in part for 64, the list of `rr` for any number, the lists of `drr` and the heaps of `fifo`,
//! `codel`, `pf` and `codes` for 1 and 2. The lists of `wrr` and `fq_codel` and the ranks of `strict` and `pss` are not
//! proved to stay sound, nor is any policy but `rr` for all numbers of queues. There the promise rests on vectors, random
//! lives and fuzzing with AddressSanitizer.
//!
//! This wrapper checks what memory safety needs: parameters in range, queue indices below the number of queues, packets of
//! an admitted length, and a view with as many queues as the policy was made for. Rates are checked when a policy is made or
//! changed; later ones are bounded by the callers' settings, and a greater one would only give a wrong choice.

use std::ffi::c_void;
use std::fmt;
use std::ptr;

use crate::ffi;
use crate::info::{self, Declaration, Param, PolicyInfo, MAX_PACKET_BYTES, MAX_RATE_BPS};
use crate::policy::{Broken, Pick, Policy, Verdict, Victim, View};

/// Most bytes of a policy's state. The core's own stay far below it; a user's file may return anything.
const MOST_STATE_BYTES: usize = 1 << 30;

/// A running policy of the core.
pub struct CorePolicy {
    info: &'static PolicyInfo,
    /// The core's state block; u64 gives it its alignment.
    state: Vec<u64>,
    nqueues: usize,
    params: Vec<u64>,
    qparams: Vec<u64>,
    /// The largest capacity reported so far. Parameters are checked against it even while the capacity is lower.
    best_bps: u64,
}

/// A policy whose parameters may change while it runs.
pub trait Adjust: Policy {
    /// Gives the policy new values; it keeps queues and credit.
    ///
    /// # Errors
    /// Values that it refuses; it then keeps its old ones.
    fn change(&mut self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault>;

    /// Whether [`Adjust::change`] would accept these values.
    ///
    /// # Errors
    /// Why it would refuse them.
    fn accepts(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault>;
}

/// The state of a [`CorePolicy`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    policy: &'static str,
    nqueues: usize,
    state: Vec<u64>,
    params: Vec<u64>,
    qparams: Vec<u64>,
    best_bps: u64,
}

/// Why parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Name of the policy.
    pub policy: &'static str,
    /// Name of the parameter at fault, where it is one.
    pub param: Option<&'static str>,
    /// Queue at fault; `None` for a parameter of the policy.
    pub queue: Option<usize>,
    /// The value given, with its unit.
    pub value: Option<String>,
    /// The values allowed, with their unit.
    pub range: Option<String>,
    /// What is wrong and what to do.
    pub cure: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.policy)?;
        if let Some(queue) = self.queue {
            write!(f, "queue {queue}: ")?;
        }
        if let Some(param) = self.param {
            write!(f, "{param}")?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            if let Some(range) = &self.range {
                write!(f, " (allowed: {range})")?;
            }
            write!(f, ": ")?;
        }
        write!(f, "{}", self.cure)
    }
}

impl std::error::Error for Fault {}

impl CorePolicy {
    /// Starts a policy for the queues of `view`. `params` has one value per parameter, `qparams` one row per queue.
    ///
    /// # Errors
    /// A value out of its range, or a combination the policy refuses.
    pub fn new(
        info: &'static PolicyInfo,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<CorePolicy, Fault> {
        check(info, view, params, qparams)?;
        let size = state_size(info, view.queues.len(), params);
        if !(1..=MOST_STATE_BYTES).contains(&size) {
            return Err(Fault {
                policy: info.name,
                queue: None,
                param: None,
                value: None,
                range: None,
                cure: "state_size() must be 1 byte .. 1 GiB".to_owned(),
            });
        }
        let mut policy = CorePolicy {
            info,
            state: vec![0; size.div_ceil(8)],
            nqueues: view.queues.len(),
            params: params.to_vec(),
            qparams: qparams.to_vec(),
            best_bps: view.link_bps,
        };
        let raw = raw_view(view);
        // SAFETY: the state block has the size the policy asked for these queues and parameters and is 8-byte aligned;
        // the view and both parameter arrays outlive the call and have the lengths `check` saw.
        unsafe { (info.table.init)(policy.block(), &raw, params.as_ptr(), qparams.as_ptr()) };
        Ok(policy)
    }

    /// Gives a running policy new values; it keeps queues and credit. Parameters that size the state keep their value.
    ///
    /// # Errors
    /// As for [`CorePolicy::new`]; the policy then keeps its old values.
    pub fn change(
        &mut self,
        view: &View<'_>,
        params: &[u64],
        qparams: &[u64],
    ) -> Result<(), Fault> {
        self.best_bps = self.best_bps.max(view.link_bps);
        let params = self.settled(view, params, qparams)?;
        let Some(change) = self.info.table.change else {
            return Ok(());
        };
        let raw = raw_view(view);
        // SAFETY: as in `new`; the block was initialised there.
        unsafe { change(self.block(), &raw, params.as_ptr(), qparams.as_ptr()) };
        self.params = params;
        self.qparams.copy_from_slice(qparams);
        Ok(())
    }

    /// Whether [`CorePolicy::change`] would accept these values.
    ///
    /// # Errors
    /// Why it would refuse them.
    pub fn accepts(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        self.settled(view, params, qparams).map(drop)
    }

    /// The parameters as a change would set them: those that size the state keep their values.
    fn settled(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<Vec<u64>, Fault> {
        self.expect_view(view);
        let mut params = params.to_vec();
        for (value, (old, param)) in params
            .iter_mut()
            .zip(self.params.iter().zip(&self.info.params))
        {
            if param.at_init {
                *value = *old;
            }
        }
        let judged = View {
            link_bps: self.best_bps.max(view.link_bps),
            ..*view
        };
        check(self.info, &judged, &params, qparams)?;
        let fixed = self.info.table.change.is_none();
        if fixed && (params != self.params || qparams != self.qparams) {
            return Err(Fault {
                cure: "cannot be changed while it runs".to_owned(),
                ..blank(self.info)
            });
        }
        Ok(params)
    }

    /// The core's declaration of this policy.
    #[must_use]
    pub fn info(&self) -> &'static PolicyInfo {
        self.info
    }

    /// The policy's parameters now.
    #[must_use]
    pub fn params(&self) -> &[u64] {
        &self.params
    }

    /// The per-queue parameters now, one row per queue.
    #[must_use]
    pub fn qparams(&self) -> &[u64] {
        &self.qparams
    }

    /// A copy of the state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            policy: self.info.name,
            nqueues: self.nqueues,
            state: self.state.clone(),
            params: self.params.clone(),
            qparams: self.qparams.clone(),
            best_bps: self.best_bps,
        }
    }

    /// Restores a snapshot.
    ///
    /// # Panics
    /// When it was taken from another policy, another number of queues or another size of state.
    pub fn restore(&mut self, snapshot: &Snapshot) {
        assert!(
            snapshot.policy == self.info.name
                && snapshot.nqueues == self.nqueues
                && snapshot.state.len() == self.state.len()
                && self
                    .info
                    .params
                    .iter()
                    .zip(self.params.iter().zip(&snapshot.params))
                    .all(|(param, (mine, theirs))| !param.at_init || mine == theirs),
            "the snapshot belongs to another policy"
        );
        self.state.copy_from_slice(&snapshot.state);
        self.params.copy_from_slice(&snapshot.params);
        self.qparams.copy_from_slice(&snapshot.qparams);
        self.best_bps = snapshot.best_bps;
    }

    fn block(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }

    #[inline]
    fn expect_view(&self, view: &View<'_>) {
        assert_eq!(
            view.queues.len(),
            self.nqueues,
            "the view has the queues the policy was made for"
        );
    }

    #[inline]
    fn report(&mut self, event: Option<ffi::Event>, view: &View<'_>, q: usize, bytes: u32) {
        if let Some(event) = event {
            self.expect_view(view);
            assert!(
                q < self.nqueues && bytes < MAX_PACKET_BYTES,
                "queue {q} and {bytes} bytes are in range"
            );
            let raw = raw_view(view);
            // SAFETY: the block is initialised; the view has its number of queues; q and bytes are in range.
            unsafe { event(self.block(), &raw, q as u32, bytes) };
        }
    }
}

impl Adjust for CorePolicy {
    fn change(&mut self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        CorePolicy::change(self, view, params, qparams)
    }

    fn accepts(&self, view: &View<'_>, params: &[u64], qparams: &[u64]) -> Result<(), Fault> {
        CorePolicy::accepts(self, view, params, qparams)
    }
}

impl Policy for CorePolicy {
    #[inline]
    fn pick(&mut self, view: &View<'_>) -> Pick {
        self.expect_view(view);
        let raw = raw_view(view);
        let mut retry_ns = ffi::NEVER;
        // SAFETY: the block is initialised and the view has its number of queues; the policy writes only the block and
        // `retry_ns`, which outlives the call.
        let queue = unsafe { (self.info.table.pick)(self.block(), &raw, &mut retry_ns) };
        if queue == ffi::NONE {
            return Pick::Nothing {
                retry_ns: (retry_ns != ffi::NEVER).then_some(retry_ns),
            };
        }
        Pick::Queue(queue as usize)
    }

    #[inline]
    fn enqueued(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(self.info.table.enqueued, view, q, bytes);
    }

    #[inline]
    fn sent(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(self.info.table.sent, view, q, bytes);
    }

    #[inline]
    fn dropped(&mut self, view: &View<'_>, q: usize, bytes: u32) {
        self.report(self.info.table.dropped, view, q, bytes);
    }

    fn rated(&mut self, view: &View<'_>) {
        self.best_bps = self.best_bps.max(view.link_bps);
        if let Some(rated) = self.info.table.rated {
            self.expect_view(view);
            debug_assert!(rates_fit(self.info, view).is_ok(), "rates are in range");
            let raw = raw_view(view);
            // SAFETY: the block is initialised and the view has its number of queues.
            unsafe { rated(self.block(), &raw) };
        }
    }

    #[inline]
    fn victim(&mut self, view: &View<'_>, q: usize, bytes: u32) -> Option<Victim> {
        let victim = self.info.table.victim?;
        self.expect_view(view);
        assert!(
            q < self.nqueues && bytes < MAX_PACKET_BYTES,
            "queue {q} and {bytes} bytes are in range"
        );
        let raw = raw_view(view);
        // SAFETY: the block is initialised; the view has its number of queues; q and bytes are in range.
        let answer = unsafe { victim(self.block(), &raw, q as u32, bytes) };
        (answer != ffi::NONE).then_some(Victim {
            queue: (answer & !ffi::FROM_HEAD) as usize,
            head: answer & ffi::FROM_HEAD != 0,
        })
    }

    #[inline(always)] // a departure asks once, but is too long for the compiler to inline this by itself
    fn leaving(&mut self, view: &View<'_>, q: usize, ecn: bool) -> Verdict {
        let Some(leaving) = self.info.table.leaving else {
            return Verdict::Pass;
        };
        self.expect_view(view);
        assert!(q < self.nqueues, "queue {q} is in range");
        let raw = raw_view(view);
        // SAFETY: the block is initialised; the view has its number of queues; q is in range.
        match unsafe { leaving(self.block(), &raw, q as u32, ecn) } {
            ffi::verdict::PASS => Verdict::Pass,
            ffi::verdict::MARK => Verdict::Mark,
            ffi::verdict::DROP => Verdict::Drop,
            other => {
                let what = format!(
                    "{}: leaving() gave the verdict {other}, which is none",
                    self.info.name
                );
                Broken(what).end_run()
            }
        }
    }

    #[inline]
    fn expired(&self, view: &View<'_>, q: usize) -> bool {
        let Some(expired) = self.info.table.expired else {
            return false;
        };
        self.expect_view(view);
        assert!(q < self.nqueues, "queue {q} is in range");
        let raw = raw_view(view);
        // SAFETY: the block is initialised and only read; the view has its number of queues; q is in range.
        unsafe { expired(self.state.as_ptr().cast(), &raw, q as u32) }
    }

    fn observe(&self, view: &View<'_>, q: usize, values: &mut [i64]) {
        if let Some(observe) = self.info.table.observe {
            self.expect_view(view);
            assert!(q < self.nqueues, "queue {q} is in range");
            assert_eq!(
                values.len(),
                self.info.stats.len(),
                "one place per statistic"
            );
            let raw = raw_view(view);
            // SAFETY: the block is initialised and only read; the view has its number of queues; q is in range; values
            // has room for the declared number of statistics.
            unsafe {
                observe(
                    self.state.as_ptr().cast(),
                    &raw,
                    q as u32,
                    values.as_mut_ptr(),
                )
            };
        }
    }
}

impl fmt::Debug for CorePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorePolicy")
            .field("policy", &self.info.name)
            .field("params", &self.params)
            .field("qparams", &self.qparams)
            .finish_non_exhaustive()
    }
}

/// Whether values are in the ranges that a policy declares, for the queues of `view`.
///
/// # Errors
/// The first that is not, or a number of queues that the policy does not serve.
pub fn in_range(
    declared: &Declaration,
    view: &View<'_>,
    params: &[u64],
    qparams: &[u64],
) -> Result<(), Fault> {
    let nqueues = view.queues.len();
    if nqueues == 0 || nqueues > declared.max_queues {
        return Err(Fault {
            cure: format!(
                "serves 1 .. {} queues, not {nqueues}: use fewer, or another policy",
                declared.max_queues
            ),
            ..blank(declared)
        });
    }
    rates_fit(declared, view)?;
    if params.len() != declared.params.len() || qparams.len() != nqueues * declared.qparams.len() {
        return Err(Fault {
            cure: format!(
                "takes {} parameters and {} for each of the {nqueues} queues; {} and {} values were given",
                declared.params.len(),
                declared.qparams.len(),
                params.len(),
                qparams.len()
            ),
            ..blank(declared)
        });
    }
    for (param, &value) in declared.params.iter().zip(params) {
        admit(declared, param, None, value)?;
    }
    for (queue, row) in qparams.chunks(declared.qparams.len().max(1)).enumerate() {
        for (param, &value) in declared.qparams.iter().zip(row) {
            admit(declared, param, Some(queue), value)?;
        }
    }
    Ok(())
}

/// Whether a policy accepts these values for the queues of `view`.
///
/// # Errors
/// The first value out of its range, or what the policy itself refuses.
pub fn check(
    info: &'static PolicyInfo,
    view: &View<'_>,
    params: &[u64],
    qparams: &[u64],
) -> Result<(), Fault> {
    in_range(info, view, params, qparams)?;
    let Some(check) = info.table.check else {
        return Ok(());
    };
    let raw = raw_view(view);
    let mut raw_fault = ffi::Fault {
        what: ptr::null(),
        param: ptr::null(),
        queue: ffi::NONE,
    };
    // SAFETY: the view and both arrays outlive the call and have the lengths the policy declares; every value is in its
    // range; the fault is ours to be written.
    if unsafe { check(&raw, params.as_ptr(), qparams.as_ptr(), &mut raw_fault) } {
        return Ok(());
    }
    // SAFETY: a refusing check fills the fault with literals or leaves it null.
    let (what, name) = unsafe { (info::text(raw_fault.what), info::text(raw_fault.param)) };
    let queue = (raw_fault.queue != ffi::NONE).then_some(raw_fault.queue as usize);
    Err(refused(info, what, name, queue, params, qparams))
}

/// The fault of values that a policy refuses, with the words of its `check`: what is wrong, and the parameter and the queue
/// at fault.
#[must_use]
pub fn refused(
    declared: &Declaration,
    what: Option<&str>,
    param: Option<&str>,
    queue: Option<usize>,
    params: &[u64],
    qparams: &[u64],
) -> Fault {
    let given = param.and_then(|name| match queue {
        None => {
            let at = declared.param(name)?;
            Some((&declared.params[at], *params.get(at)?))
        }
        Some(queue) => {
            let at = declared.qparam(name)?;
            let value = qparams.get(queue * declared.qparams.len() + at)?;
            Some((&declared.qparams[at], *value))
        }
    });
    Fault {
        param: given.map(|(param, _)| param.name),
        queue,
        value: given.map(|(param, value)| param.show(value)),
        range: given.map(|(param, _)| param.range()),
        cure: what
            .unwrap_or("these parameters do not fit together")
            .to_owned(),
        ..blank(declared)
    }
}

fn admit(
    declared: &Declaration,
    param: &Param,
    queue: Option<usize>,
    value: u64,
) -> Result<(), Fault> {
    if param.admits(value) {
        return Ok(());
    }
    Err(Fault {
        param: Some(param.name),
        queue,
        value: Some(param.show(value)),
        range: Some(param.range()),
        cure: "give a value inside the range".to_owned(),
        ..blank(declared)
    })
}

/// Whether the rates of a view are those that the contract allows; 0 is a link whose rate is not known, or a blocked channel.
fn rates_fit(declared: &Declaration, view: &View<'_>) -> Result<(), Fault> {
    let outside = |bps: u64| bps > MAX_RATE_BPS;
    let queue = view.queues.iter().position(|queue| outside(queue.rate_bps));
    let bps = queue.map_or(view.link_bps, |at| view.queues[at].rate_bps);
    if !outside(bps) {
        return Ok(());
    }
    Err(Fault {
        queue,
        cure: format!("a rate of {bps} bit/s is above {MAX_RATE_BPS} bit/s; give a lower one"),
        ..blank(declared)
    })
}

/// Bytes of state for a number of queues that the policy serves, and values of its parameters in their ranges.
///
/// # Panics
/// When there is not one value per parameter.
#[must_use]
pub fn state_size(info: &'static PolicyInfo, nqueues: usize, params: &[u64]) -> usize {
    assert_eq!(params.len(), info.params.len(), "one value per parameter");
    // SAFETY: params has the declared number of values.
    unsafe { (info.table.state_size)(nqueues as u32, params.as_ptr()) }
}

fn blank(declared: &Declaration) -> Fault {
    Fault {
        policy: declared.name,
        param: None,
        queue: None,
        value: None,
        range: None,
        cure: String::new(),
    }
}

#[inline]
fn raw_view(view: &View<'_>) -> ffi::View {
    ffi::View {
        now_ns: view.now_ns,
        link_bps: view.link_bps,
        queues: view.queues.as_ptr(),
        nqueues: view.queues.len() as u32,
    }
}
