//! The processes that have the wallet open, and what each of them alone does.
//!
//! A process that has left changes nothing any more: the store refuses its commands. So whoever
//! takes over what it did need not fear that it comes back.

use crate::ledger::rows::{Claims, Processes, Reservations, Rows, try_all};
use crate::ledger::{Books, Command, Refusal};
use crate::model::process::{Claimed, ProcessId, Task};

/// The process of this store begins to use the wallet. Whatever was claimed or reserved by processes
/// that have gone is free again.
#[derive(Clone, Copy, Debug)]
pub struct Join;

impl Command for Join {
    type Answer = ();

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        if books.process == ProcessId::ALONE {
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
        for (task, claimed) in books.rows.range::<Claims>(..)? {
            if books.rows.get::<Processes>(&claimed.holder)?.is_none() {
                books.end_task(task)?;
            }
        }
        for (number, _) in books.rows.range::<Reservations>(..)? {
            if books.rows.get::<Claims>(&Task::Spending(number))?.is_none() {
                books.release(number)?;
            }
        }
        books.rows.put::<Processes>(books.process, &())
    }
}

/// The process of this store begins to use the wallet alone, to move it to another store.
#[derive(Clone, Copy, Debug)]
pub struct JoinAlone;

impl Command for JoinAlone {
    /// Whether the process has the wallet for itself. If not, another one has it open.
    type Answer = bool;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<bool, R::Error> {
        let processes = books.rows.range::<Processes>(..)?;
        if processes.iter().any(|(process, ())| *process != books.process) {
            return Ok(false);
        }
        Join.run(books)?;
        books.claim(Task::Moving, 0)
    }
}

/// A process has stopped using the wallet, or counts as dead. What it has claimed and reserved is
/// free again.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The process. `None` stands for the process of this store.
    pub process: Option<ProcessId>,
}

impl Command for Leave {
    /// Whether the process used the wallet until then.
    type Answer = bool;

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<bool, R::Error> {
        let process = self.process.unwrap_or(books.process);
        for (task, claimed) in books.rows.range::<Claims>(..)? {
            if claimed.holder == process {
                books.end_task(task)?;
            }
        }
        books.rows.remove::<Processes>(process)
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

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<bool, R::Error> {
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

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
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

    fn run<R: Rows>(&self, books: &mut Books<R>) -> Result<(), R::Error> {
        let claimed = Claimed { holder: books.process, number: self.number };
        let mut claims = books.rows.range::<Claims>(..)?;
        claims.retain(|(_, found)| *found == claimed);
        try_all(claims, |(task, _)| books.end_task(task)).map(drop)
    }
}

impl<R: Rows> Books<R> {
    /// Claims a task for the process of this store. Returns whether the process has it now.
    pub(crate) fn claim(&mut self, task: Task, number: u64) -> Result<bool, R::Error> {
        let claimed = Claimed { holder: self.process, number };
        match self.rows.get::<Claims>(&task)? {
            Some(found) if found.holder != self.process => Ok(false),
            Some(found) if found == claimed => Ok(true),
            Some(_) => self.rows.put::<Claims>(task, &claimed).map(|()| true),
            None => self.claim_new(task, number).map(|()| true),
        }
    }

    /// Claims a task that nobody else has.
    pub(crate) fn claim_new(&mut self, task: Task, number: u64) -> Result<(), R::Error> {
        self.rows.add::<Claims>(task, &Claimed { holder: self.process, number })
    }

    /// Ends a task, whoever has it. Coins that are still reserved for it are released.
    pub(crate) fn end_task(&mut self, task: Task) -> Result<(), R::Error> {
        match task {
            Task::Spending(number) => self.release(number),
            _ => self.rows.remove::<Claims>(task).map(drop),
        }
    }
}
