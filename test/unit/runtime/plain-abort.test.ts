import { describe, expect, it } from 'vitest';
import { PlainAbort } from '../../../src/runtime/async.ts';

describe('PlainAbort', () => {
  it('calls each listener once, in the order in which they came', () => {
    const abort = new PlainAbort();
    const called: string[] = [];
    for (const name of ['a', 'b']) abort.addEventListener('abort', () => called.push(name));
    expect(abort.aborted).toBe(false);
    abort.abort();
    abort.abort();
    expect(called).toEqual(['a', 'b']);
    expect(abort.aborted).toBe(true);
  });

  it('calls no listener that was removed', () => {
    const abort = new PlainAbort();
    const called: string[] = [];
    const first = (): void => void called.push('first');
    const second = (): void => void called.push('second');
    abort.addEventListener('abort', first);
    abort.addEventListener('abort', second);
    abort.removeEventListener('abort', first);
    abort.removeEventListener('abort', first);
    abort.abort();
    expect(called).toEqual(['second']);
  });

  it('lets a listener remove another one while all are called', () => {
    const abort = new PlainAbort();
    const called: string[] = [];
    const last = (): void => void called.push('last');
    abort.addEventListener('abort', () => abort.removeEventListener('abort', last));
    abort.addEventListener('abort', last);
    abort.abort();
    expect(called).toEqual(['last']);
  });

  it.each([0, 1])('aborts with any of those that it follows', (which) => {
    const sources = [new AbortController(), new AbortController()];
    const abort = new PlainAbort(...sources.map(({ signal }) => signal));
    const behind = new PlainAbort(abort);
    expect(behind.aborted).toBe(false);
    sources[which]?.abort();
    expect([abort.aborted, behind.aborted]).toEqual([true, true]);
  });

  it('is aborted from the start behind one that is', () => {
    const aborted = new PlainAbort(AbortSignal.abort());
    expect([aborted.aborted, new PlainAbort(aborted).aborted]).toEqual([true, true]);
  });
});
