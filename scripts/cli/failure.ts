/** Exit codes. `headgate --help` and docs/command-line.md list them. */
export const EXIT = {
  ok: 0,
  /** The command ran with a negative result: changes were found, a check failed, or the change was not confirmed. */
  no: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
  notFound: 5,
  conflict: 6,
  invalid: 7,
  /** Partial success. The output lists what was left out. */
  partial: 8,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a message for people and an exit code for scripts. */
export class CommandFailure extends Error {
  override readonly name = 'Failure';
  readonly code: ExitCode;

  constructor(code: ExitCode, message: string) {
    super(message);
    this.code = code;
  }
}

export class TooLate extends CommandFailure {
  constructor(origin: string, waitMs: number) {
    super(EXIT.unreachable, `No response from ${origin} within ${waitMs / 1_000} s.`);
  }
}

export function exitOfStatus(status: number): ExitCode {
  if (status === 401 || status === 403 || status === 429) return EXIT.notAllowed;
  if (status === 404) return EXIT.notFound;
  if (status === 409 || status === 412) return EXIT.conflict;
  if (status === 400 || status === 413 || status === 422) return EXIT.invalid;
  return status >= 500 ? EXIT.unreachable : EXIT.no;
}
