//! Money in and out, on a real network.

#![allow(clippy::unwrap_used)]

mod beef;
mod bookkeeping;
mod chain;
mod chain_payees_proof;
mod channel;
mod counter;
mod dialects;
mod flow;
mod forms;
mod guard;
mod leaving_consolidation;
mod leaving_refunds;
mod leaving_withdrawals;
mod lossy_feed;
mod many_receipts;
mod merchant;
mod money_attempts;
mod money_chain;
mod money_coins;
mod money_fees;
mod money_heard_of;
mod money_known;
mod money_not_final;
mod money_payees;
mod money_restored;
mod money_safe_mode;
mod money_strict_node;
mod money_undecided;
mod node_away;
mod over_tls;
mod pay_command_line;
mod payees;
mod payees_answers;
mod payees_cancel;
mod payees_restart;
mod paying;
mod paying_scene;
mod receiving;
mod receiving_in_flight;
mod receiving_refusals;
mod turns;
mod watching;
mod watching_gaps;
