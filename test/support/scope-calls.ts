/** Calls of scopes at a group of the core: served, refused, or only asked for. */
import { expect } from 'vitest';
import type { UpstreamSignal } from '../../src/core/words/signal.ts';
import type { AskOptions, TestGroup } from './core-builders.ts';

/** Grants a call, and refuses it at the upstream. */
export function refuse(
  group: TestGroup,
  name: string,
  options: AskOptions,
  signal: Partial<UpstreamSignal>,
): void {
  expect(group.ask(name, options)).toContain(`grant ${name}.1`);
  group.report(name, signal);
  group.release(name, 'failed');
}

/** Grants a call, and serves it at the upstream. */
export function serve(group: TestGroup, name: string, options: AskOptions): void {
  expect(group.ask(name, options)).toContain(`grant ${name}.1`);
  group.report(name, { kind: 'served' });
  group.release(name);
}

/** Asks for a slot. Returns whether it was granted at once. */
export function isGranted(group: TestGroup, name: string, options: AskOptions): boolean {
  return group.ask(name, options).includes(`grant ${name}.1`);
}
