/**
 * Resolves once all pending work is done: written streams are read, and aborted connections are closed. The runtime
 * runs a timer only then.
 */
export function whenQuiet(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
