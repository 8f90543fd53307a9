import { describe, expect, it } from 'vitest';
import { actorWords } from '../../../dashboard/src/model/audit.ts';
import { isInstant } from '../../../dashboard/src/model/change-list.ts';
import { rollbackTargets } from '../../../dashboard/src/model/rollback-target.ts';

const CHANGE = { path: 'groups[a].paused', from: false, to: true };
const entry = (version: number, changes = [CHANGE], changes_omitted = 0) => ({
  version,
  changes,
  changes_omitted,
});

describe('ways back from an entry of the audit log', () => {
  const kept = new Set([7, 8, 9]);

  it('lead to its version, and one change back', () => {
    expect(rollbackTargets(entry(8), kept, 9)).toEqual({
      undo: { undo: 8 },
      restore: { version: 8 },
    });
    expect(rollbackTargets(entry(8, [], 3), kept, 9).undo).toEqual({ undo: 8 });
  });

  it('do not lead to where one is, nor to what is not kept any more', () => {
    expect(rollbackTargets(entry(9), kept, 9)).toEqual({ undo: { undo: 9 }, restore: null });
    expect(rollbackTargets(entry(7), kept, 9)).toEqual({ undo: null, restore: { version: 7 } });
    expect(rollbackTargets(entry(6), kept, 9)).toEqual({ undo: null, restore: null });
  });

  it('undo nothing where nothing was changed', () => {
    expect(rollbackTargets(entry(8, []), kept, 9)).toEqual({ undo: null, restore: { version: 8 } });
  });
});

describe('the audit log in words', () => {
  it('says of an actor that many may share that they do', () => {
    expect(actorWords('admin-token')).toContain('Someone with the ADMIN_TOKEN');
    expect(actorWords('headgate:directory')).toContain('Headgate reverted');
    expect(actorWords('night-shift')).toBe('Holder of this admin key');
  });

  it.each([
    ['2026-11-20T10:00:00.000Z', true],
    ['2026-11-20T10:00:00Z', true],
    ['2026-11-20', false],
    [5, false],
    [null, false],
  ])('takes %j for an instant: %s', (value, is) => {
    expect(isInstant(value)).toBe(is);
  });
});
