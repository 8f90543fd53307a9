import type { LeaseView, WaiterView } from './status.ts';

/** Kinds of slot holders. */
export const KINDS: Readonly<Record<NonNullable<LeaseView['kind']> | 'call', string>> = {
  call: 'call',
  session: 'session',
  turn: 'turn',
  lease: 'lease',
  run: 'run',
};

/** Whether any holder is not a call, so that a column for the kind is useful. */
export function haveKinds(all: readonly Pick<LeaseView | WaiterView, 'kind'>[]): boolean {
  return all.some(({ kind }) => kind !== undefined);
}

/** Whether the holder learns of a release only at its next renewal. */
export function stopsAtRenewal({ kind }: Pick<LeaseView, 'kind'>): boolean {
  return kind === 'lease' || kind === 'run';
}
