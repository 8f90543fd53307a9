/** One change to the core's source that a test must notice. */
export interface Mutation {
  readonly name: string;
  /** File under `src/core`. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}
