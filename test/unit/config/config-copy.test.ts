// Which configuration an isolate keeps, of several that arrive in any order.
import { beforeEach, describe, expect, it } from 'vitest';
import { ConfigCopy } from '../../../src/config/snapshots.ts';
import { configSchema } from '../../../src/contract/config/config.ts';
import type { ConfigSnapshot } from '../../../src/contract/rpc/directory-rpc.ts';

const config = configSchema.parse({});
const UNCONFIRMED_AT = 5;

function snapshot(version: number, directory = 'first'): ConfigSnapshot {
  return {
    version,
    config,
    fingerprintKey: directory,
    tag: `${directory}-${version}`,
    changedAt: { everywhere: 0, groups: {} },
    fullGroups: [],
  };
}

let copy: ConfigCopy;
const version = () => copy.table?.snapshot.version;
const answer = (number: number, of: ConfigSnapshot) =>
  copy.takeAnswer(of, null, { number, at: number * 100 });
const confirm = (number: number, known: string) =>
  copy.takeAnswer(null, known, { number, at: number * 100 });
const store = (of: ConfigSnapshot, sent: number, answeredBefore = 0) =>
  copy.takeStored(of, { answeredBefore, sent, confirmedAt: UNCONFIRMED_AT });

beforeEach(() => {
  copy = new ConfigCopy();
});

describe('the answer to a later query', () => {
  it('wins, also with a lower version or of another directory', () => {
    answer(1, snapshot(7));
    answer(2, snapshot(3));
    expect(version()).toBe(3);
    answer(3, snapshot(1, 'second'));
    expect(version()).toBe(1);
    expect(copy.answered).toBe(3);
    expect(copy.confirmedAt).toBe(300);
  });
});

describe('the answer to an earlier query', () => {
  beforeEach(() => answer(2, snapshot(7)));

  it('wins with a newer version, and confirms no later time', () => {
    answer(1, snapshot(8));
    expect(version()).toBe(8);
    expect(copy.confirmedAt).toBe(200);
  });

  it('does not win with an older version', () => {
    answer(1, snapshot(6));
    expect(version()).toBe(7);
  });

  it('does not win with a higher version of another directory', () => {
    answer(1, snapshot(9, 'second'));
    expect(version()).toBe(7);
  });
});

describe('the answer that nothing is newer', () => {
  beforeEach(() => answer(1, snapshot(7)));

  it('confirms the copy', () => {
    confirm(2, 'first-7');
    expect(copy.confirmedAt).toBe(200);
    expect(copy.answered).toBe(2);
  });

  it('says nothing about a copy that arrived meanwhile', () => {
    confirm(2, 'first-6');
    expect(copy.confirmedAt).toBe(100);
    expect(copy.answered).toBe(1);
  });
});

describe('the copy in the store', () => {
  it('is used without any other, and nothing has confirmed it', () => {
    store(snapshot(7), 0);
    expect(version()).toBe(7);
    expect(copy.answered).toBe(0);
    expect(copy.confirmedAt).toBe(UNCONFIRMED_AT);
  });

  it('does not win over an answer that arrived while it was read', () => {
    answer(1, snapshot(7));
    store(snapshot(8), 1, 0);
    expect(version()).toBe(7);
  });

  it('does not win with the same version or an older one', () => {
    answer(1, snapshot(7));
    store(snapshot(7), 1, 1);
    store(snapshot(6), 1, 1);
    expect(version()).toBe(7);
    expect(copy.confirmedAt).toBe(100);
  });

  it('does not win with a higher version of another directory', () => {
    answer(1, snapshot(7));
    store(snapshot(9, 'second'), 1, 1);
    expect(version()).toBe(7);
  });

  it('is newer than what was asked before, and older than what is asked after', () => {
    store(snapshot(7), 1);
    answer(1, snapshot(6));
    expect(version()).toBe(7);
    answer(2, snapshot(6));
    expect(version()).toBe(6);
  });
});
