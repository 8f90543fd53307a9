/**
 * Resolves once everything that was ready has been done: streams that were written are read, connections that were
 * aborted are closed. The runtime runs a timer only then.
 */
export function whenQuiet(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
