//! The payment page in a real browser.

mod codes;
mod hostile;
mod live;
mod loading;
mod looks;
mod origins;
mod shop;
mod streams;
mod terminal;
mod wallet_button;
