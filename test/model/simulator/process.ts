/**
 * Callers as generators: they read from top to bottom like the code of a Worker, and wait on the virtual
 * clock.
 */
export type Process<Result = void> = Generator<Subscribe, Result, unknown>;

type Subscribe = (resume: (value: unknown) => void) => void;

/** Waits until `subscribe` calls back, for what it calls back with. */
export function* wait<Value>(subscribe: (resume: (value: Value) => void) => void): Process<Value> {
  return (yield subscribe as Subscribe) as Value;
}

/** Begins a process, which then goes on by itself. */
export function start(process: Process<unknown>): void {
  const goOn = (value: unknown): void => {
    const { done, value: subscribe } = process.next(value);
    if (done !== true) subscribe(goOn);
  };
  goOn(undefined);
}

/** Waits for all of them, in the order in which they are given. */
export function* all<Value>(processes: readonly Process<Value>[]): Process<Value[]> {
  return yield* wait<Value[]>((resume) => {
    const values: Value[] = [];
    let left = processes.length;
    if (left === 0) resume(values);
    for (const [index, process] of processes.entries()) {
      start(
        (function* () {
          values[index] = yield* process;
          left -= 1;
          if (left === 0) resume(values);
        })(),
      );
    }
  });
}
