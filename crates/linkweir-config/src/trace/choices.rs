// SPDX-License-Identifier: BSD-3-Clause
//! What the user decides about a trace's times, where the file cannot say it.

/// Makes an enumeration of words, the first of which is the default.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// Names in scenarios, in the order of the variants.
            pub const NAMES: &'static [&'static str] = &[$($word),*];
            pub(super) const ALL: &'static [$name] = &[$($name::$variant),*];

            /// Its name in scenarios.
            pub fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

words! {
    /// Which interval the value of a line belongs to.
    Covers {
        /// That from the line to the next.
        #[default]
        After = "after",
        /// That from the line before to the line.
        Before = "before",
    }
}

words! {
    /// What becomes of lines that have the same time.
    EqualTimes {
        /// They are refused.
        #[default]
        Refuse = "refuse",
        /// The last of them counts.
        Last = "last",
        /// Their mean counts.
        Mean = "mean",
        /// The sum of their capacities counts, and the mean of their delays and losses.
        Sum = "sum",
        /// They are spread evenly until the next time.
        Spread = "spread",
    }
}

words! {
    /// What becomes of a line that is earlier than the line before.
    EarlierTimes {
        /// It is refused.
        #[default]
        Refuse = "refuse",
        /// A new recording begins there, one interval after the end of the one before.
        Append = "append",
        /// Lines are sorted by time.
        Sort = "sort",
        /// The line is left out.
        Drop = "drop",
    }
}

words! {
    /// What the capacity is in a gap: a time without lines, longer than three times the usual interval.
    Gap {
        /// That of the line to which the gap belongs.
        #[default]
        Hold = "hold",
        /// 0.
        Outage = "outage",
        /// The file is refused.
        Refuse = "refuse",
    }
}
