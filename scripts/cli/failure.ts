/** Exit codes, which docs/command-line.md lists. */
export const EXIT = {
  ok: 0,
  /** Asked and answered, but not as it was hoped: it differs, something is missing, somebody said no. */
  no: 1,
  usage: 2,
  unreachable: 3,
  notAllowed: 4,
  notFound: 5,
  conflict: 6,
  invalid: 7,
  /** Done in part: what was left out is listed. */
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

/** Ends what nobody answered in time. */
export class TooLate extends CommandFailure {
  constructor(origin: string, waitMs: number) {
    super(EXIT.unreachable, `No answer from ${origin} within ${waitMs / 1_000} s.`);
  }
}

/** Picks the exit code of an answer that is none. */
export function exitOfStatus(status: number): ExitCode {
  if (status === 401 || status === 403 || status === 429) return EXIT.notAllowed;
  if (status === 404) return EXIT.notFound;
  if (status === 409 || status === 412) return EXIT.conflict;
  if (status === 400 || status === 413 || status === 422) return EXIT.invalid;
  return status >= 500 ? EXIT.unreachable : EXIT.no;
}
