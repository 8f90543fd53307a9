import { describe, expect, it } from 'vitest';
import {
  actionParts,
  withInstants,
  auditQuery,
  filterIn,
  filterProblem,
  linkTerms,
  NO_FILTER,
} from '../../../dashboard/src/model/audit.ts';

describe('the filter of the audit log', () => {
  it('asks for nothing that was left empty', () => {
    expect(auditQuery(NO_FILTER)).toEqual({});
    expect(auditQuery({ ...NO_FILTER, actor: ' alice ', action: '  ' })).toEqual({
      actor: 'alice',
    });
  });

  it('asks for times in UTC, whatever the time zone of the reader', () => {
    const since = '2026-11-20T10:00';
    expect(auditQuery({ ...NO_FILTER, since, until: since })).toEqual({
      since: new Date(since).toISOString(),
      until: new Date(since).toISOString(),
    });
  });

  it('stands in a link, with all of the time that another page showed', () => {
    const link = { from: '2026-11-20T10:00:30Z', to: '2026-11-20T10:07:01Z', action: 'group a:' };
    const filter = filterIn(link);
    expect(auditQuery(filter)).toEqual({
      action: 'group a:',
      since: '2026-11-20T10:00:00.000Z',
      until: '2026-11-20T10:08:00.000Z',
    });
    expect(filterIn(linkTerms(filter))).toEqual(filter);
    expect(linkTerms(filterIn({ from: 'yesterday' }))).toEqual(linkTerms(NO_FILTER));
  });

  it.each([
    ['', '', null],
    ['2026-11-20T10:00', '', null],
    ['2026-11-20T10:00', '2026-11-20T11:00', null],
    ['2026-11-20T11:00', '2026-11-20T10:00', '“From” must be earlier than “Until”.'],
  ])('from %j until %j: %j', (since, until, problem) => {
    expect(filterProblem({ ...NO_FILTER, since, until })).toBe(problem);
  });
});

it('an action tells its end by the clock of the reader', () => {
  const clock = (at: string) => `<${new Date(at).getTime()}>`;
  expect(withInstants('pause until 2026-11-20T10:00:00.000Z', clock)).toBe(
    `pause until <${Date.UTC(2026, 10, 20, 10)}>`,
  );
  expect(withInstants('patch', clock)).toBe('patch');
});

it.each([
  ['group openai-shared: patch', 'openai-shared', 'patch'],
  ['config: import', null, 'config: import'],
  ['key team: revoke', null, 'key team: revoke'],
])('an action names the group that it is about: %s', (action, group, verb) => {
  expect(actionParts(action)).toEqual({ group, verb });
});
