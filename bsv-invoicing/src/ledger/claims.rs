//! The processes that have the wallet open, and what each of them alone does.
//!
//! A process that has left changes nothing any more: the store refuses its commands. So whoever
//! takes over what it did need not fear that it comes back.

use std::ops::Bound;

use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{Claims, Processes, RowsOf, WalletStoreError, try_all};
use crate::ledger::{Books, Command, Refusal};
use crate::model::process::{Claimed, ProcessId, Task};

/// How many claims one step looks at.
const CLAIMS_AT_ONCE: usize = 250;

/// The process of this store begins to use the wallet. Claims of processes that have gone end
/// first, a part of them in each step, and the coins reserved for them are free again.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// Only claims of later tasks are looked at. `None` begins.
    pub after: Option<Task>,
}

impl Command for Join {
    /// The last task that was looked at, if there may be more. The process has joined if there are
    /// no more.
    type Answer = Option<Task>;

    fn run(&self, books: &mut Books<'_>) -> Result<Option<Task>, WalletStoreError> {
        if books.process == ProcessId::ALONE && self.after.is_none() {
            for (process, ()) in books.rows.range::<Processes>(..)? {
                books.rows.remove::<Processes>(process)?;
            }
        }
        let mover = books.rows.get::<Claims>(&Task::Moving)?;
        if let Some(Claimed { holder, .. }) = mover
            && holder != books.process
            && books.rows.get::<Processes>(&holder)?.is_some()
        {
            return Err(Refusal::Moving.into());
        }
        let (claims, next) = books.claims_after(self.after)?;
        try_all(claims, |(task, claimed)| match books.rows.get::<Processes>(&claimed.holder)? {
            Some(()) => Ok(()),
            None => books.end_task(task),
        })?;
        if next.is_none() {
            books.rows.put::<Processes>(books.process, &())?;
        }
        Ok(next)
    }
}

/// The process of this store begins to use the wallet alone, to move it to another store.
#[derive(Clone, Copy, Debug)]
pub struct JoinAlone;

impl Command for JoinAlone {
    /// Whether the process has the wallet for itself. If not, another one has it open.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        let processes = books.rows.range::<Processes>(..)?;
        if processes.iter().any(|(process, ())| *process != books.process) {
            return Ok(false);
        }
        let claimed = Claimed { holder: books.process, number: 0 };
        books.rows.put::<Claims>(Task::Moving, &claimed)?;
        books.rows.put::<Processes>(books.process, &())?;
        Ok(true)
    }
}

/// A process has stopped using the wallet, or counts as dead. Its claims end, a part of them in
/// each step, and the coins reserved for them are free again. Another process can change nothing
/// from the first step on. The process of this store has left after the last one.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The process. `None` stands for the process of this store.
    pub process: Option<ProcessId>,
    /// Only claims of later tasks are looked at. `None` begins.
    pub after: Option<Task>,
}

/// The outcome of a step of [`Leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whether the process used the wallet until this step.
    pub was_there: bool,
    /// The last task that was looked at, if there may be more.
    pub next: Option<Task>,
}

impl Command for Leave {
    type Answer = Left;

    fn run(&self, books: &mut Books<'_>) -> Result<Left, WalletStoreError> {
        let process = self.process.unwrap_or(books.process);
        let (claims, next) = books.claims_after(self.after)?;
        try_all(claims, |(task, claimed)| match claimed.holder == process {
            true => books.end_task(task),
            false => Ok(()),
        })?;
        let leaves = match process == books.process {
            true => next.is_none(),
            false => self.after.is_none(),
        };
        let was_there = leaves && books.rows.remove::<Processes>(process)?;
        Ok(Left { was_there, next })
    }
}

/// The process of this store claims a task.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The task.
    pub task: Task,
    /// Tells this claim from earlier ones of the same task by the same process.
    pub number: u64,
}

impl Command for Claim {
    /// Whether the process has the task now. If not, another one has it.
    type Answer = bool;

    fn run(&self, books: &mut Books<'_>) -> Result<bool, WalletStoreError> {
        books.claim(self.task, self.number)
    }
}

/// The process of this store ends what it has claimed. Nothing changes if it has claimed the task
/// again since, or if another process has.
#[derive(Clone, Copy, Debug)]
pub struct LetGo {
    /// The task.
    pub task: Task,
    /// The number of the claim.
    pub number: u64,
}

impl Command for LetGo {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let claimed = Claimed { holder: books.process, number: self.number };
        match books.rows.get::<Claims>(&self.task)? {
            Some(found) if found == claimed => books.end_task(self.task),
            _ => Ok(()),
        }
    }
}

/// The process of this store ends everything that it has claimed under a number, and releases the
/// coins that it has reserved under the number. The caller need not know whether it has anything.
#[derive(Clone, Copy, Debug)]
pub struct LetGoAll {
    /// The number.
    pub number: u64,
}

impl Command for LetGoAll {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        let claimed = Claimed { holder: books.process, number: self.number };
        let mut claims = books.rows.range::<Claims>(..)?;
        claims.retain(|(_, found)| *found == claimed);
        try_all(claims, |(task, _)| books.end_task(task)).map(drop)
    }
}

impl Books<'_> {
    /// The claims that a step looks at, and the task of the last one if there may be more.
    fn claims_after(
        &self,
        after: Option<Task>,
    ) -> Result<(RowsOf<Claims>, Option<Task>), WalletStoreError> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let claims =
            self.rows.first::<Claims>((from, Bound::Unbounded), Ascending, CLAIMS_AT_ONCE)?;
        let last = claims.last().filter(|_| claims.len() == CLAIMS_AT_ONCE);
        let next = last.map(|(task, _)| *task);
        Ok((claims, next))
    }

    /// Claims a task for the process of this store. Returns whether the process has it now.
    pub(crate) fn claim(&mut self, task: Task, number: u64) -> Result<bool, WalletStoreError> {
        let claimed = Claimed { holder: self.process, number };
        match self.rows.get::<Claims>(&task)? {
            Some(found) if found.holder != self.process => Ok(false),
            Some(found) if found == claimed => Ok(true),
            Some(_) => self.rows.put::<Claims>(task, &claimed).map(|()| true),
            None => self.claim_new(task, number).map(|()| true),
        }
    }

    /// Claims a task that nobody else has.
    pub(crate) fn claim_new(&mut self, task: Task, number: u64) -> Result<(), WalletStoreError> {
        self.rows.add::<Claims>(task, &Claimed { holder: self.process, number })
    }

    /// Ends a task, whoever has it. Coins that are still reserved for it are released.
    pub(crate) fn end_task(&mut self, task: Task) -> Result<(), WalletStoreError> {
        match task {
            Task::Spending(number) => self.release(number),
            _ => self.rows.remove::<Claims>(task).map(drop),
        }
    }
}
