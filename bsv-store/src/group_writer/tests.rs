use std::path::Path;
use std::sync::{Mutex, mpsc as blocking};

use redb::{Table, TableDefinition, WriteTransaction};
use tokio::task::JoinSet;

use super::*;
use crate::database::{Database, DatabaseOptions, Schema};

const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");
/// The key of the count of batches in the table.
const BATCHES: u64 = 0;

fn create_tables(transaction: &WriteTransaction) -> Result<(), StoreError> {
    transaction.open_table(NUMBERS)?;
    Ok(())
}

const SCHEMA: Schema = Schema { name: "numbers", migrations: &[create_tables] };

/// A table that counts batches.
struct Counted;

struct OpenCounted<'t> {
    numbers: Table<'t, u64, u64>,
    batches: u64,
}

impl Tables for Counted {
    type Open<'t> = OpenCounted<'t>;
    type Told = u64;

    fn open(transaction: &WriteTransaction) -> Result<OpenCounted<'_>, StoreError> {
        let numbers = transaction.open_table(NUMBERS)?;
        let batches = redb::ReadableTable::get(&numbers, BATCHES)?.map_or(0, |count| count.value());
        Ok(OpenCounted { numbers, batches })
    }

    fn close(mut tables: OpenCounted<'_>) -> Result<Option<u64>, StoreError> {
        tables.numbers.insert(BATCHES, tables.batches + 1)?;
        Ok(Some(tables.batches + 1))
    }
}

type Outcome = Result<Result<(), &'static str>, StoreError>;

fn open(dir: &Path, options: DatabaseOptions) -> Arc<Database> {
    Arc::new(Database::open(&dir.join("numbers.redb"), &SCHEMA, options).unwrap())
}

fn rows(database: &Database) -> Vec<u64> {
    let rows = database.read(|transaction| {
        let table = transaction.open_table(NUMBERS)?;
        let rows = redb::ReadableTable::iter(&table)?;
        rows.map(|row| Ok(row?.0.value())).filter(|key| !matches!(key, Ok(BATCHES))).collect()
    });
    rows.unwrap()
}

fn batches(database: &Database) -> u64 {
    let count = database.read(|transaction| {
        Ok(transaction.open_table(NUMBERS)?.get(BATCHES)?.map_or(0, |count| count.value()))
    });
    count.unwrap()
}

fn insert(
    number: u64,
) -> impl FnMut(&mut OpenCounted<'_>) -> Result<Result<(), &'static str>, StoreError> {
    move |tables| {
        tables.numbers.insert(number, number)?;
        Ok(Ok(()))
    }
}

fn broken_disk() -> StoreError {
    redb::StorageError::Io(io::Error::from(io::ErrorKind::StorageFull)).into()
}

/// A database and its writer. A command holds the writer up until `release` is dropped. The
/// commands that are queued meanwhile share a commit.
struct HeldUp {
    database: Arc<Database>,
    writer: Arc<GroupWriter<DatabaseBatches<Counted>>>,
    commands: JoinSet<(u64, Outcome)>,
    /// The number of batches that each committed batch reported.
    told: Arc<Mutex<Vec<u64>>>,
    release: blocking::Sender<()>,
    dir: tempfile::TempDir,
}

impl HeldUp {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = open(dir.path(), DatabaseOptions::default());
        let told = Arc::<Mutex<Vec<u64>>>::default();
        let committed = {
            let told = Arc::clone(&told);
            move |batches| told.lock().unwrap().push(batches)
        };
        let writer = Arc::new(
            GroupWriter::start(DatabaseBatches::new(Arc::clone(&database)), committed).unwrap(),
        );
        let (release, released) = blocking::channel::<()>();
        let (begin, begun) = oneshot::channel();
        let mut begin = Some(begin);
        let mut held = Self { database, writer, commands: JoinSet::new(), told, release, dir };
        held.queue(1, move |tables| {
            begin.take().expect("it runs once").send(()).unwrap();
            let _ = released.recv();
            insert(1)(tables)
        });
        begun.await.unwrap();
        held
    }

    fn queue(
        &mut self,
        number: u64,
        command: impl FnMut(&mut OpenCounted<'_>) -> Outcome + Send + 'static,
    ) {
        self.queue_weighing(0, number, command);
    }

    fn queue_weighing(
        &mut self,
        weight: usize,
        number: u64,
        command: impl FnMut(&mut OpenCounted<'_>) -> Outcome + Send + 'static,
    ) {
        let writer = Arc::clone(&self.writer);
        self.commands.spawn(async move { (number, writer.run(weight, command).await) });
    }

    /// Releases the writer once all commands are queued, and returns the outcomes in order.
    async fn outcomes(self) -> (Arc<Database>, Vec<Outcome>, tempfile::TempDir) {
        while QUEUE_LEN - self.writer.queue.as_ref().unwrap().capacity() < self.commands.len() - 1 {
            tokio::task::yield_now().await;
        }
        drop(self.release);
        let mut outcomes = self.commands.join_all().await;
        outcomes.sort_by_key(|(number, _)| *number);
        (self.database, outcomes.into_iter().map(|(_, outcome)| outcome).collect(), self.dir)
    }
}

#[tokio::test]
async fn commands_that_wait_share_a_commit() {
    let mut held = HeldUp::new().await;
    for number in 2..=100 {
        held.queue(number, insert(number));
    }
    let told = Arc::clone(&held.told);
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Ok(())))));
    assert_eq!(rows(&database), Vec::from_iter(1..=100));
    assert_eq!(batches(&database), 2);
    assert_eq!(*told.lock().unwrap(), [1, 2]);
    assert_eq!(
        (database.counts().commands(), database.counts().commits.counts().count()),
        (100, 2)
    );
}

#[tokio::test]
async fn large_commands_do_not_all_share_a_commit() {
    let mut held = HeldUp::new().await;
    let half = MOST_WEIGHT / 2;
    for (number, weight) in (2..).zip([half, half, half, 0, MOST_WEIGHT + 1, usize::MAX, 0]) {
        held.queue_weighing(weight, number, move |tables| {
            tables.numbers.insert(number, tables.batches)?;
            Ok(Ok(()))
        });
    }
    let told = Arc::clone(&held.told);
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Ok(Ok(())))));
    assert_eq!(*told.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
    let batch_of = database.read(|transaction| {
        let numbers = transaction.open_table(NUMBERS)?;
        let batch = |number| Ok(redb::ReadableTable::get(&numbers, number)?.unwrap().value());
        (2..=8).map(batch).collect::<Result<Vec<_>, StoreError>>()
    });
    assert_eq!(batch_of.unwrap(), [1, 1, 2, 2, 3, 4, 5]);
}

/// Batches that take in what comes after they have begun.
struct Late {
    begun: blocking::Sender<()>,
    go_on: blocking::Receiver<()>,
}

impl Batches for Late {
    type Open<'t> = Vec<u64>;
    type Told = Vec<u64>;

    fn write(&mut self, batch: &mut Batch<Self>) -> Result<Option<Vec<u64>>, StoreError> {
        self.begun.send(()).unwrap();
        self.go_on.recv().unwrap();
        batch.take_in();
        let mut numbers = Vec::new();
        assert_eq!(batch.run(&mut numbers)?, BatchRun::Done);
        Ok(Some(numbers))
    }
}

#[tokio::test]
async fn a_batch_takes_in_commands_that_come_later_if_they_fit() {
    let (begin, begun) = blocking::channel();
    let (release, go_on) = blocking::channel();
    let (tell, told) = blocking::channel();
    let late = Late { begun: begin, go_on };
    let writer = Arc::new(GroupWriter::start(late, move |it| tell.send(it).unwrap()).unwrap());
    let mut callers = JoinSet::new();
    let half = MOST_WEIGHT / 2;
    for (number, weight) in (1..).zip([half, 0, half, 1, 0]) {
        let writer = Arc::clone(&writer);
        callers.spawn(async move {
            let insert = move |numbers: &mut Vec<u64>| {
                numbers.push(number);
                Ok(Ok::<_, ()>(()))
            };
            writer.run(weight, insert).await
        });
        tokio::task::yield_now().await;
        if number == 1 {
            begun.recv().unwrap();
        }
    }
    release.send(()).unwrap();
    begun.recv().unwrap();
    release.send(()).unwrap();
    assert!(callers.join_all().await.iter().all(|outcome| matches!(outcome, Ok(Ok(())))));
    drop(writer);
    assert_eq!(told.into_iter().collect::<Vec<_>>(), [vec![1, 2, 3], vec![4, 5]]);
}

#[tokio::test]
async fn a_refused_command_does_not_disturb_the_others() {
    let mut held = HeldUp::new().await;
    held.queue(2, insert(2));
    held.queue(3, |_| Ok(Err("refused")));
    held.queue(4, insert(4));
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(matches!(&outcomes[..], [Ok(Ok(())), Ok(Ok(())), Ok(Err("refused")), Ok(Ok(()))]));
    assert_eq!(rows(&database), [1, 2, 4]);
}

#[tokio::test]
async fn a_batch_of_refusals_only_is_not_committed() {
    let mut held = HeldUp::new().await;
    held.queue(2, |_| Ok(Err("refused")));
    held.queue(3, |_| Ok(Err("refused")));
    let told = Arc::clone(&held.told);
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(matches!(&outcomes[1..], [Ok(Err("refused")), Ok(Err("refused"))]));
    assert_eq!(batches(&database), 1);
    assert_eq!(*told.lock().unwrap(), [1]);
}

#[tokio::test]
async fn each_batch_that_has_reached_the_disk_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), DatabaseOptions::default());
    let (sender, told) = blocking::channel();
    let tell = move |batches| sender.send(batches).unwrap();
    let writer = GroupWriter::start(DatabaseBatches::<Counted>::new(database), tell).unwrap();
    assert!(matches!(writer.run(0, insert(1)).await, Ok(Ok(()))));
    assert!(matches!(writer.run(0, |_| Ok::<Result<(), _>, _>(Err("no"))).await, Ok(Err("no"))));
    let failed = writer.run(0, |_| Err::<Result<(), ()>, _>(broken_disk())).await;
    assert!(failed.is_err());
    assert!(matches!(writer.run(0, insert(2)).await, Ok(Ok(()))));
    drop(writer);
    assert_eq!(Vec::from_iter(told), [1, 2]);
}

#[tokio::test]
async fn a_storage_error_undoes_the_batch_and_all_are_told() {
    let mut held = HeldUp::new().await;
    held.queue(2, insert(2));
    held.queue(3, |tables| {
        tables.numbers.insert(3, 3)?;
        Err(broken_disk())
    });
    held.queue(4, insert(4));
    let (writer, told) = (Arc::clone(&held.writer), Arc::clone(&held.told));
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(matches!(outcomes[0], Ok(Ok(()))));
    assert_eq!(*told.lock().unwrap(), [1]);
    for outcome in &outcomes[1..] {
        assert!(matches!(outcome, Err(error) if error.is_out_of_space()), "{outcome:?}");
    }
    assert_eq!(rows(&database), [1]);
    assert!(matches!(writer.run(0, insert(5)).await, Ok(Ok(()))));
    assert_eq!(rows(&database), [1, 5]);
}

/// Two commands in the middle of a batch write something, and then do what `fail` does.
async fn check_that_they_fail_alone(fail: fn() -> Outcome, is_told: fn(&StoreError) -> bool) {
    let mut held = HeldUp::new().await;
    held.queue(2, insert(2));
    for number in [3, 4] {
        held.queue(number, move |tables| {
            tables.numbers.insert(number, number)?;
            fail()
        });
    }
    held.queue(5, insert(5));
    let (writer, told) = (Arc::clone(&held.writer), Arc::clone(&held.told));
    let (database, outcomes, _dir) = held.outcomes().await;
    assert_eq!(*told.lock().unwrap(), [1, 2]);
    let [first, before, failed, failed_too, after] = &outcomes[..] else { panic!("five commands") };
    for done in [first, before, after] {
        assert!(matches!(done, Ok(Ok(()))), "{done:?}");
    }
    for failed in [failed, failed_too] {
        assert!(matches!(failed, Err(error) if is_told(error)), "{failed:?}");
    }
    assert_eq!(rows(&database), [1, 2, 5]);
    assert!(matches!(writer.run(0, insert(6)).await, Ok(Ok(()))));
    assert_eq!(rows(&database), [1, 2, 5, 6]);
}

#[tokio::test]
async fn a_command_that_panics_fails_alone() {
    check_that_they_fail_alone(
        || panic!("on purpose"),
        |error| matches!(error, StoreError::Panicked),
    )
    .await;
}

#[tokio::test]
async fn a_command_that_comes_upon_a_damaged_record_fails_alone() {
    check_that_they_fail_alone(
        || Err(StoreError::damaged("a record")),
        |error| matches!(error, StoreError::Damaged(_)),
    )
    .await;
}

#[tokio::test]
async fn dropping_the_writer_waits_for_what_is_queued() {
    let mut held = HeldUp::new().await;
    for number in 2..=10 {
        // The callers are gone before their commands run.
        let writer = Arc::clone(&held.writer);
        let (queued, is_queued) = oneshot::channel();
        let caller = tokio::spawn(async move {
            let run = writer.run(0, insert(number));
            tokio::pin!(run);
            assert!(poll_once(run.as_mut()).await.is_none());
            queued.send(()).unwrap();
            run.await.unwrap().unwrap();
        });
        is_queued.await.unwrap();
        caller.abort();
        let _ = caller.await;
    }
    held.queue(11, insert(11));
    let writer = Arc::clone(&held.writer);
    let (database, outcomes, _dir) = held.outcomes().await;
    assert!(matches!(outcomes.last(), Some(Ok(Ok(())))));
    drop(Arc::into_inner(writer).unwrap());
    assert_eq!(rows(&database), Vec::from_iter(1..=11));
}

/// Polls the future once.
async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        std::task::Poll::Ready(match polled {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn nothing_is_written_below_the_reserve() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), DatabaseOptions::default()));
    let options = DatabaseOptions { free_space_reserve: u64::MAX, ..Default::default() };
    let database = open(dir.path(), options);
    let writer =
        GroupWriter::start(DatabaseBatches::<Counted>::new(Arc::clone(&database)), drop).unwrap();
    for _ in 0..5 {
        let refused = writer.run(0, insert(1)).await;
        assert!(matches!(refused, Err(StoreError::NoSpace { .. })), "{refused:?}");
    }
    assert!(rows(&database).is_empty());
}

#[tokio::test]
async fn a_disk_that_keeps_failing_is_left_alone_for_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path(), DatabaseOptions::default());
    let writer =
        GroupWriter::start(DatabaseBatches::<Counted>::new(Arc::clone(&database)), drop).unwrap();
    let reaches_disk = async || {
        let (ran, has_run) = blocking::channel();
        let failing = writer.run(0, move |_| {
            ran.send(()).unwrap();
            Err::<Result<(), ()>, _>(broken_disk())
        });
        assert!(failing.await.unwrap_err().is_out_of_space());
        has_run.recv().is_ok()
    };
    assert!(reaches_disk().await && reaches_disk().await);
    // A busy machine may let a pause pass. The next one is twice as long.
    let mut tries = 0;
    while reaches_disk().await {
        tries += 1;
        assert!(tries < 8, "there is no pause");
    }
    let works_again = async {
        while writer.run(0, insert(2)).await.is_err() {
            tokio::time::sleep(FIRST_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), works_again).await.unwrap();
    assert!(matches!(writer.run(0, insert(3)).await, Ok(Ok(()))));
    assert_eq!(rows(&database), [2, 3]);
}

#[test]
fn pauses_grow_to_a_bound() {
    let mut failures = Failures::default();
    let pause = |failures: &Failures, elapsed: Duration| {
        let (error, _) = failures.last.clone().unwrap();
        let at = Instant::now().checked_sub(elapsed).unwrap();
        Failures { count: failures.count, last: Some((error, at)) }.refusal().is_some()
    };
    failures.note(&Err(broken_disk()));
    assert!(!pause(&failures, Duration::ZERO));
    for milliseconds in [50, 100, 200, 400, 800, 1600, 2000, 2000] {
        failures.note(&Err(broken_disk()));
        assert!(pause(&failures, Duration::from_millis(milliseconds - 30)));
        assert!(!pause(&failures, Duration::from_millis(milliseconds)));
    }
    failures.count = u32::MAX - 1;
    failures.note(&Err(broken_disk()));
    assert!(!pause(&failures, LONGEST_PAUSE));
    failures.note(&Ok(()));
    assert!(failures.refusal().is_none());
}
