/** A field of a group that has another value for a while. Undefined values: the field is not there. */
export interface TemporaryField {
  /** Name of the group; automatic ones too. */
  readonly group: string;
  readonly path: readonly string[];
  /** The value that it goes back to. */
  readonly was?: unknown;
  /** The value until then. */
  readonly value?: unknown;
  /** Epoch milliseconds. */
  readonly until: number;
  readonly actor: string;
}

/** The word of a change of a group on the time for which it holds. */
export interface TemporaryOrder {
  readonly group: string;
  /** When it goes back, in epoch milliseconds. Null: it stays. */
  readonly until: number | null;
  /** Fields that it changes for that time. Empty where it stays. */
  readonly fields: readonly Pick<TemporaryField, 'path' | 'was' | 'value'>[];
  /** Fields that it names, with the value that they have already: their time changes, or ends so that they stay. */
  readonly named: readonly (readonly string[])[];
}
