//! Answers to requests for long work, which tell how far it has come.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Collected};
use hyper::StatusCode;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::http::{Answer, Problem, answer};

/// The height that was reached, and the height of the last block.
pub(super) type Reached = (u32, u32);

/// How often an answer tells how far the work has come, at most.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// Does long work, and answers its result. If the work has told how far it has come, the answer is lines of
/// `{"progress":[HEIGHT,LAST]}`, and then the result, or `{"problem":…}`. The work ends with its reader.
pub(super) async fn answer<F>(
    work: impl FnOnce(watch::Sender<Reached>) -> F,
) -> Result<Answer, Problem>
where
    F: Future<Output = Result<Value, Problem>> + Send + 'static,
{
    let (tell, mut told) = watch::channel((0, 0));
    let mut work = Box::pin(work(tell));
    tokio::select! {
        biased;
        Ok(()) = told.changed() => {}
        done = &mut work => return Ok(answer::json(StatusCode::OK, &done?)),
    }
    let (parts, body) = mpsc::channel(4);
    tokio::spawn(async move {
        let done = loop {
            let (height, last) = *told.borrow_and_update();
            let line = format!("{}\n", json!({ "progress": [height, last] }));
            // Sending fails if the reader is gone.
            if parts.send(Some(line.into())).await.is_err() {
                return;
            }
            tokio::select! {
                done = &mut work => break done,
                () = sleep(TELL_EVERY) => {}
            }
        };
        let _ = parts.send(Some(last_line(done).await)).await;
        let _ = parts.send(None).await;
    });
    Ok(answer::bytes_stream(body))
}

async fn last_line(done: Result<Value, Problem>) -> Bytes {
    match done {
        Ok(result) => result.to_string().into(),
        Err(problem) => {
            let problem = problem.into_answer().into_body().collect().await;
            let problem = problem.map(Collected::to_bytes).unwrap_or_default();
            [b"{\"problem\":", problem.as_ref(), b"}"].concat().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text_of(answer: Answer) -> String {
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn an_answer_tells_how_far_the_work_has_come() {
        for fails in [false, true] {
            let work = |tell: watch::Sender<Reached>| async move {
                tell.send_replace((7, 9));
                tokio::task::yield_now().await;
                match fails {
                    true => Err(Problem::unprocessable("no")),
                    false => Ok(json!({ "balance": 5 })),
                }
            };
            let text = text_of(answer(work).await.unwrap()).await;
            let lines: Vec<_> = text.lines().collect();
            let [progress, last] = lines[..] else { panic!("{text}") };
            assert_eq!(progress, r#"{"progress":[7,9]}"#);
            let last: Value = serde_json::from_str(last).unwrap();
            match fails {
                true => assert_eq!(last["problem"]["detail"], "no"),
                false => assert_eq!(last, json!({ "balance": 5 })),
            }
        }
    }

    #[tokio::test]
    async fn work_that_tells_nothing_is_answered_as_any_other() {
        let done = answer(|_| async { Ok(json!({ "balance": 5 })) }).await.unwrap();
        assert_eq!(text_of(done).await, r#"{"balance":5}"#);
        assert!(answer(|_| async { Err(Problem::unprocessable("no")) }).await.is_err());
    }
}
