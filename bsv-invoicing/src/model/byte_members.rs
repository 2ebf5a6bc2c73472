//! How members of rows that are bytes become CBOR: each module is for `#[cbor(with = ...)]`.

use bsv_tx::{BlockHash, MerkleBranch, Txid};

use crate::model::invoice_id::InvoiceId;

macro_rules! byte_members {
    ($($name:ident: $value:ty: |$own:ident| $to:expr, |$bytes:ident| $from:expr;)*) => {
        $(pub(crate) mod $name {
            use super::*;

            pub(crate) fn encode<C, W: minicbor::encode::Write>(
                $own: &$value,
                encoder: &mut minicbor::Encoder<W>,
                _: &mut C,
            ) -> Result<(), minicbor::encode::Error<W::Error>> {
                encoder.bytes($to)?.ok()
            }

            pub(crate) fn decode<'b, C>(
                decoder: &mut minicbor::Decoder<'b>,
                _: &mut C,
            ) -> Result<$value, minicbor::decode::Error> {
                let $bytes = decoder.bytes()?;
                $from.ok_or_else(|| minicbor::decode::Error::message(concat!("no ", stringify!($value))))
            }
        })*
    };
}
byte_members! {
    invoice_id: InvoiceId: |it| it.as_bytes(),
        |bytes| bytes.try_into().ok().and_then(|bytes| InvoiceId::from_bytes(bytes).ok());
    txid: Txid: |it| it.as_bytes(), |bytes| bytes.try_into().ok().map(Txid::from_bytes);
    block_hash: BlockHash: |it| it.as_bytes(), |bytes| bytes.try_into().ok().map(BlockHash::from_bytes);
    merkle_branch: MerkleBranch: |it| &{
        let mut bytes = Vec::new();
        it.encode(&mut bytes);
        bytes
    }, |bytes| MerkleBranch::from_bytes(bytes).ok();
}
