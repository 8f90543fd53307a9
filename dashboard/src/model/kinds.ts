import type { LeaseView, WaiterView } from './status.ts';

/** The kind of what holds a slot or waits for one, in a word. */
export const KINDS: Readonly<Record<NonNullable<LeaseView['kind']> | 'call', string>> = {
  call: 'call',
  session: 'session',
  turn: 'turn',
  lease: 'lease',
  run: 'run',
};

/** Whether any of them is something else than a call, so that the kind is worth a column. */
export function haveKinds(all: readonly Pick<LeaseView | WaiterView, 'kind'>[]): boolean {
  return all.some(({ kind }) => kind !== undefined);
}

/** Whether its holder hears only at its next renewal that it is to stop. */
export function hearsLate({ kind }: Pick<LeaseView, 'kind'>): boolean {
  return kind === 'lease' || kind === 'run';
}
