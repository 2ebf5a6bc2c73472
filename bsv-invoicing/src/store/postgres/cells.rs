//! How plain values become columns. All numbers are `bigint`. All texts are UTF-8 in `bytea`, because a `text` cannot
//! hold U+0000.

use redb::Value;

use crate::ledger::rows::Damaged;
use crate::store::stored::Stored;

/// What a column holds in a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cell {
    Null,
    Flag(bool),
    Number(i64),
    Bytes(Vec<u8>),
}

/// The cells of a key, or of the rest of a row, in the order of their columns. Keys are in the order of the
/// database's index.
pub(super) type Cells = Vec<Cell>;

/// What a column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Flag,
    Number,
    Bytes,
}

impl ColumnType {
    /// The name of the type in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flag => "boolean",
            Self::Number => "bigint",
            Self::Bytes => "bytea",
        }
    }
}

/// A plain value that takes columns.
pub(super) trait Columns: Value {
    /// Adds the types of its columns.
    fn types(types: &mut Vec<ColumnType>);

    /// Adds its cells.
    fn write(value: &Stored<'_, Self>, cells: &mut Cells);

    /// Takes its cells.
    fn read<'c>(cells: &mut CellReader<'c>) -> Result<Stored<'c, Self>, Damaged>;
}

/// The types of the columns of a value.
pub(super) fn types_of<V: Columns>() -> Vec<ColumnType> {
    let mut types = Vec::new();
    V::types(&mut types);
    types
}

/// The cells of a value.
pub(super) fn cells_of<V: Columns>(value: &Stored<'_, V>) -> Cells {
    let mut cells = Vec::new();
    V::write(value, &mut cells);
    cells
}

/// The value of these cells. It uses all of them.
pub(super) fn read_cells<V: Columns>(cells: &[Cell]) -> Result<Stored<'_, V>, Damaged> {
    let mut reader = CellReader::Row(cells);
    let value = V::read(&mut reader)?;
    if reader.is_at_end() { Ok(value) } else { Err(damaged("more columns than it has")) }
}

/// Cells that are read one after the other.
#[derive(Clone)]
pub(super) enum CellReader<'c> {
    /// Those of a row.
    Row(&'c [Cell]),
    /// Those that a list has put into one cell.
    List(&'c [u8]),
}

#[derive(Clone, Copy)]
pub(super) enum CellRef<'c> {
    Null,
    Flag(bool),
    Number(i64),
    Bytes(&'c [u8]),
}

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const BYTES: u8 = 4;

impl<'c> CellReader<'c> {
    fn is_at_end(&self) -> bool {
        match self {
            Self::Row(cells) => cells.is_empty(),
            Self::List(bytes) => bytes.is_empty(),
        }
    }

    fn take(&mut self) -> Result<CellRef<'c>, Damaged> {
        match self {
            Self::Row(cells) => {
                let (cell, rest) = cells.split_first().ok_or_else(|| damaged("too few columns"))?;
                *cells = rest;
                Ok(match cell {
                    Cell::Null => CellRef::Null,
                    Cell::Flag(flag) => CellRef::Flag(*flag),
                    Cell::Number(number) => CellRef::Number(*number),
                    Cell::Bytes(bytes) => CellRef::Bytes(bytes),
                })
            }
            Self::List(bytes) => {
                take_of_list(bytes).ok_or_else(|| damaged("a list that cannot be read"))
            }
        }
    }
}

fn take_of_list<'c>(bytes: &mut &'c [u8]) -> Option<CellRef<'c>> {
    let (tag, rest) = bytes.split_first()?;
    *bytes = rest;
    let mut take = |len: usize| {
        let (taken, rest) = bytes.split_at_checked(len)?;
        *bytes = rest;
        Some(taken)
    };
    Some(match *tag {
        NULL => CellRef::Null,
        FALSE => CellRef::Flag(false),
        TRUE => CellRef::Flag(true),
        NUMBER => CellRef::Number(i64::from_be_bytes(take(8)?.try_into().ok()?)),
        BYTES => {
            let len = u32::from_be_bytes(take(4)?.try_into().ok()?);
            CellRef::Bytes(take(usize::try_from(len).ok()?)?)
        }
        _ => return None,
    })
}

fn write_to_list(cell: &Cell, bytes: &mut Vec<u8>) {
    match cell {
        Cell::Null => bytes.push(NULL),
        Cell::Flag(flag) => bytes.push(if *flag { TRUE } else { FALSE }),
        Cell::Number(number) => {
            bytes.push(NUMBER);
            bytes.extend(number.to_be_bytes());
        }
        Cell::Bytes(inner) => {
            bytes.push(BYTES);
            let len = u32::try_from(inner.len()).expect("what lists hold is short");
            bytes.extend(len.to_be_bytes());
            bytes.extend(inner);
        }
    }
}

fn damaged(what: &str) -> Damaged {
    Damaged(format!("a row with {what}"))
}

/// A number as the database holds it. The highest `bigint` stands for every higher number. No amount, time or count
/// comes near it, but "for ever" and the ends of ranges lie beyond it.
pub(super) fn to_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_number(number: i64) -> Result<u64, Damaged> {
    match number {
        i64::MAX => Ok(u64::MAX),
        number => u64::try_from(number).map_err(|_| damaged("a number below zero")),
    }
}

impl Columns for u64 {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Number);
    }

    fn write(value: &u64, cells: &mut Cells) {
        cells.push(Cell::Number(to_number(*value)));
    }

    fn read(cells: &mut CellReader<'_>) -> Result<u64, Damaged> {
        match cells.take()? {
            CellRef::Number(number) => from_number(number),
            _ => Err(damaged("something else than a number")),
        }
    }
}

macro_rules! smaller_numbers {
    ($($number:ty),*) => {
        $(impl Columns for $number {
            fn types(types: &mut Vec<ColumnType>) {
                u64::types(types);
            }

            fn write(value: &$number, cells: &mut Cells) {
                u64::write(&u64::from(*value), cells);
            }

            fn read(cells: &mut CellReader<'_>) -> Result<$number, Damaged> {
                Self::try_from(u64::read(cells)?).map_err(|_| damaged("too high a number"))
            }
        })*
    };
}
smaller_numbers!(u8, u16, u32);

impl Columns for bool {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Flag);
    }

    fn write(value: &bool, cells: &mut Cells) {
        cells.push(Cell::Flag(*value));
    }

    fn read(cells: &mut CellReader<'_>) -> Result<bool, Damaged> {
        match cells.take()? {
            CellRef::Flag(flag) => Ok(flag),
            _ => Err(damaged("something else than a flag")),
        }
    }
}

impl Columns for &'static [u8] {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Bytes);
    }

    fn write(value: &&[u8], cells: &mut Cells) {
        cells.push(Cell::Bytes(value.to_vec()));
    }

    fn read<'c>(cells: &mut CellReader<'c>) -> Result<&'c [u8], Damaged> {
        match cells.take()? {
            CellRef::Bytes(bytes) => Ok(bytes),
            _ => Err(damaged("something else than bytes")),
        }
    }
}

impl Columns for &'static str {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Bytes);
    }

    fn write(value: &&str, cells: &mut Cells) {
        cells.push(Cell::Bytes(value.as_bytes().to_vec()));
    }

    fn read<'c>(cells: &mut CellReader<'c>) -> Result<&'c str, Damaged> {
        let bytes = <&[u8]>::read(cells)?;
        std::str::from_utf8(bytes).map_err(|_| damaged("a text that is none"))
    }
}

impl<const N: usize> Columns for [u8; N] {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Bytes);
    }

    fn write(value: &[u8; N], cells: &mut Cells) {
        cells.push(Cell::Bytes(value.to_vec()));
    }

    fn read(cells: &mut CellReader<'_>) -> Result<[u8; N], Damaged> {
        let bytes = <&[u8]>::read(cells)?;
        bytes.try_into().map_err(|_| damaged("bytes of another length"))
    }
}

impl<const N: usize> Columns for [u64; N] {
    fn types(types: &mut Vec<ColumnType>) {
        types.extend([ColumnType::Number; N]);
    }

    fn write(value: &[u64; N], cells: &mut Cells) {
        cells.extend(value.iter().map(|number| Cell::Number(to_number(*number))));
    }

    fn read(cells: &mut CellReader<'_>) -> Result<[u64; N], Damaged> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u64::read(cells)?;
        }
        Ok(numbers)
    }
}

/// A value whose columns are all null if there is none. Its first column is never null.
impl<T: Columns> Columns for Option<T> {
    fn types(types: &mut Vec<ColumnType>) {
        T::types(types);
    }

    fn write(value: &Option<T::SelfType<'_>>, cells: &mut Cells) {
        match value {
            Some(value) => T::write(value, cells),
            None => cells.extend(types_of::<T>().iter().map(|_| Cell::Null)),
        }
    }

    fn read<'c>(cells: &mut CellReader<'c>) -> Result<Option<T::SelfType<'c>>, Damaged> {
        if !matches!(cells.clone().take()?, CellRef::Null) {
            return T::read(cells).map(Some);
        }
        for _ in types_of::<T>() {
            if !matches!(cells.take()?, CellRef::Null) {
                return Err(damaged("half of what may be absent"));
            }
        }
        Ok(None)
    }
}

/// A list, in one column.
impl<T: Columns> Columns for Vec<T> {
    fn types(types: &mut Vec<ColumnType>) {
        types.push(ColumnType::Bytes);
    }

    fn write(value: &Vec<T::SelfType<'_>>, cells: &mut Cells) {
        let mut list = Vec::new();
        for item in value {
            for cell in cells_of::<T>(item) {
                write_to_list(&cell, &mut list);
            }
        }
        cells.push(Cell::Bytes(list));
    }

    fn read<'c>(cells: &mut CellReader<'c>) -> Result<Vec<T::SelfType<'c>>, Damaged> {
        let mut items = CellReader::List(<&[u8]>::read(cells)?);
        let mut list = Vec::new();
        while !items.is_at_end() {
            list.push(T::read(&mut items)?);
        }
        Ok(list)
    }
}

impl Columns for () {
    fn types(_: &mut Vec<ColumnType>) {}

    fn write((): &(), _: &mut Cells) {}

    fn read(_: &mut CellReader<'_>) -> Result<(), Damaged> {
        Ok(())
    }
}

macro_rules! tuples {
    ($(($($part:ident $index:tt),*);)*) => {
        $(impl<$($part: Columns),*> Columns for ($($part,)*) {
            fn types(types: &mut Vec<ColumnType>) {
                $($part::types(types);)*
            }

            fn write(value: &Stored<'_, Self>, cells: &mut Cells) {
                $($part::write(&value.$index, cells);)*
            }

            fn read<'c>(cells: &mut CellReader<'c>) -> Result<Stored<'c, Self>, Damaged> {
                Ok(($($part::read(cells)?,)*))
            }
        })*
    };
}
tuples! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
}

#[cfg(test)]
mod tests {
    use super::*;

    type Everything = (
        (u64, u8, bool),
        (&'static str, Option<&'static str>, Option<(u32, [u8; 2])>),
        (Vec<(u64, &'static str)>, [u64; 3], &'static [u8]),
    );

    #[test]
    fn values_are_read_as_they_were_written() {
        let list = vec![(0, ""), (u64::MAX, "a\0b")];
        for (text, block) in [(None, None), (Some("\0"), Some((u32::MAX, [1, 2])))] {
            let value =
                ((u64::MAX, 255, true), ("ä", text, block), (list.clone(), [1, 2, 3], &[9][..]));
            let cells = cells_of::<Everything>(&value);
            assert_eq!(cells.len(), types_of::<Everything>().len());
            assert_eq!(read_cells::<Everything>(&cells).unwrap(), value);
        }
    }

    #[test]
    fn what_does_not_fit_is_damage() {
        let number = |number| [Cell::Number(number)];
        assert!(read_cells::<u64>(&number(-1)).is_err());
        assert!(read_cells::<u8>(&number(256)).is_err());
        assert!(read_cells::<u64>(&[]).is_err());
        assert!(read_cells::<u64>(&[Cell::Number(1), Cell::Null]).is_err());
        assert!(read_cells::<u64>(&[Cell::Null]).is_err());
        assert!(read_cells::<&str>(&[Cell::Bytes(vec![0xff])]).is_err());
        assert!(read_cells::<[u8; 2]>(&[Cell::Bytes(vec![1])]).is_err());
        assert!(read_cells::<Option<(u64, u64)>>(&[Cell::Null, Cell::Number(1)]).is_err());
        for list in [&[5][..], &[3, 1], &[4, 0, 0, 0, 2, 1], &[4, 255, 255, 255, 255]] {
            assert!(read_cells::<Vec<u64>>(&[Cell::Bytes(list.to_vec())]).is_err(), "{list:?}");
        }
    }
}
