// Which calls may start a run, which ask for one, and what answers say of it.
import { describe, expect, test } from 'vitest';
import {
  RunDocument,
  RunEvents,
  asksForRun,
  cancelsRun,
  mayStartRunAt,
} from '../../../src/upstream/operation/runs.ts';

test.each<[string, boolean]>([
  ['/v1/responses', true],
  ['/v1/responses/', true],
  ['/V1/Responses', true],
  ['/v1%2fresponses', true],
  ['/openai/v1/responses', true],
  ['/v1/responses/compact', false],
  ['/v1/responses/resp_1', false],
  ['/v1/threads/runs', true],
  ['/v1/threads/t1/runs', true],
  ['/v1/threads/t1/runs/r1/submit_tool_outputs', true],
  ['/v1/threads/t1/messages', false],
  ['/v1/videos', true],
  ['/openai/v1/video/generations/jobs', true],
  ['/async-invoke', true],
  ['/v1beta/models/veo-3:predictLongRunning', true],
  ['/v1beta/interactions', true],
  ['/v1/videos/edits', true],
  ['/v1/videos/extensions', true],
  ['/v1/videos/video_1/remix', true],
  ['/v1/videos/video_1', false],
  ['/v1/chat/completions', false],
])('a call of %s may start a run: %s', (path, starts) => {
  expect(mayStartRunAt(path)).toBe(starts);
});

test.each([
  '/v1/responses/resp_1',
  '/v1/responses/resp_1/cancel',
  '/v1/threads/t1/runs/r1',
  '/v1/threads/t1/runs/r1/cancel',
  '/v1/videos/video_1',
  '/async-invoke/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aasync-invoke%2Fx',
  '/v1beta/models/veo-3/operations/abc',
  '/v1beta/interactions/v1_x',
  '/v1beta/interactions/v1_x/cancel',
  '/v1/projects/p/locations/l/publishers/google/models/veo-3:fetchPredictOperation',
])('%s asks for a run', (path) => {
  expect(asksForRun(path)).toBe(true);
});

test.each([
  '/v1/responses',
  '/v1/responses/resp_1/input_items',
  '/v1/models/m',
  '/v1/threads/t1',
  '/v1/files/file_1/content;/responses/resp_1',
  '/v1/files/file_1/content%3f/responses/resp_1',
  '/v1/responses/x%2f..%2f..%2ffiles/file_1/content',
])('%s asks for none', (path) => {
  expect(asksForRun(path)).toBe(false);
});

test.each([
  ['/v1/responses/resp_1/cancel', true],
  ['/v1/responses/resp_1/cancel/', true],
  ['/v1/threads/t1/runs/r1/cancel', true],
  ['/v1beta/interactions/v1_x/cancel', true],
  ['/v1/responses/resp_1', false],
  ['/v1/custom/run;/responses/resp_1/cancel', false],
  ['/v1/custom/run%3f/responses/resp_1/cancel', false],
])('%s cancels a run, whatever it is taken for: %s', (path, cancels) => {
  expect(cancelsRun(path)).toBe(cancels);
});

function runSaid(text: string): RunDocument['reportedRun'] {
  const document = new RunDocument();
  document.push(new TextEncoder().encode(text));
  return document.reportedRun;
}

describe('an answer', () => {
  test.each<[object, object | null]>([
    [
      { id: 'r', status: 'queued' },
      { id: 'r', state: 'goes on' },
    ],
    [
      { id: 'r', status: 'in_progress', background: true },
      { id: 'r', state: 'goes on' },
    ],
    [
      { id: 'r', status: 'cancelling' },
      { id: 'r', state: 'goes on' },
    ],
    [
      { id: 'r', status: 'completed' },
      { id: 'r', state: 'ended' },
    ],
    [
      { id: 'r', status: 'requires_action' },
      { id: 'r', state: 'ended' },
    ],
    [
      { id: 'r', status: 'never seen' },
      { id: 'r', state: 'ended' },
    ],
    [
      { id: 'r', status: 'cancelled' },
      { id: 'r', state: 'cancelled' },
    ],
    [
      { id: 'r', object: 'response.deleted', deleted: true },
      { id: 'r', state: 'cancelled' },
    ],
    [{ id: 'r', status: 'completed', background: false }, null],
    [{ invocationArn: 'arn:x' }, { id: 'arn:x', state: 'goes on' }],
    [
      { invocationArn: 'arn:x', status: 'InProgress' },
      { id: 'arn:x', state: 'goes on' },
    ],
    [
      { invocationArn: 'arn:x', status: 'Completed' },
      { id: 'arn:x', state: 'ended' },
    ],
    [{ name: 'models/veo/operations/o' }, { id: 'models/veo/operations/o', state: 'goes on' }],
    [
      { name: 'a/operations/o', done: true },
      { id: 'a/operations/o', state: 'ended' },
    ],
    ...['IN PROGRESS', 'in-progress', 'Canceling'].map((status): [object, object] => [
      { id: 'r', status },
      { id: 'r', state: 'goes on' },
    ]),
    [{ response: { id: 'r', status: 'queued' } }, { id: 'r', state: 'goes on' }],
    [
      { id: 'r', instructions: 'x'.repeat(1_000_000), background: true, status: 'queued' },
      { id: 'r', state: 'goes on' },
    ],
    [{ id: 'r', output: [{ id: 'o', status: 'in_progress' }] }, null],
    [{ id: 'chatcmpl_1', choices: [] }, null],
    [{ id: 7, status: 'queued' }, null],
    [{ id: 'x'.repeat(501), status: 'queued' }, null],
    [[{ id: 'r', status: 'queued' }], null],
    [{}, null],
  ])('%j says %j', (answer, said) => {
    expect(runSaid(JSON.stringify(answer))).toEqual(said);
  });

  test.each(['', 'null', 'no JSON', '{"id":"r"', '"queued"'])('%j says nothing', (text) => {
    expect(runSaid(text)).toBeNull();
  });

  test('with escapes and a byte order mark', () => {
    const text =
      '\ufeff{"name":"models\\/veo\\/operations\\/o","\\u0069d":"r","status":"\\u0071ueued"}';
    expect(runSaid(text)).toEqual({ id: 'r', state: 'goes on' });
  });

  test('that was cut says what stands before', () => {
    expect(runSaid('{"id":"r","status":"completed","output":[{"text":"abc')).toEqual({
      id: 'r',
      state: 'ended',
    });
  });
});

describe('the events of a stream', () => {
  const event = (type: string, response: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: 1, response })}\n\n`;
  const run = { id: 'resp_1', background: true };
  const created = event('response.created', { ...run, status: 'queued' });
  const completed = event('response.completed', {
    ...run,
    status: 'completed',
    output: ['x'.repeat(100_000)],
  });
  const delta =
    'data: {"type":"response.output_text.delta","delta":"\\"type\\":\\"response.failed\\""}\n\n';
  const readAll = (text: string, size: number) => {
    const reported: string[] = [];
    const events = new RunEvents(({ state }) => reported.push(state));
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length; at += size) events.push(bytes.subarray(at, at + size));
    return { reportedRun: events.reportedRun, told: reported };
  };

  test.each([1, 7, 1_000, 1_000_000])('in pieces of %i bytes', (size) => {
    expect(readAll(created + delta, size).reportedRun).toEqual({ id: 'resp_1', state: 'goes on' });
    expect(readAll(created + delta + completed, size)).toEqual({
      reportedRun: { id: 'resp_1', state: 'ended' },
      told: ['goes on', 'ended'],
    });
  });

  test('of an interaction', () => {
    const interaction = { id: 'v1_x', background: true, status: 'in_progress' };
    const data = JSON.stringify({ event_type: 'interaction.start', interaction });
    expect(readAll(`data: ${data}\n\n`, 10).reportedRun).toEqual({ id: 'v1_x', state: 'goes on' });
  });

  test('of an answer in the foreground are read only up to the first event that shows it', () => {
    const foreground = event('response.created', { id: 'resp_0', status: 'in_progress' });
    expect(readAll(foreground + created, 50).reportedRun).toBeNull();
  });

  test.each([
    ['with its type last', { response: { ...run, status: 'queued' }, type: 'response.created' }],
    ['with its type in its own line alone', { response: { ...run, status: 'queued' } }],
    [
      'with long instructions first',
      {
        type: 'response.created',
        response: { instructions: 'x'.repeat(600_000), status: 'queued', ...run },
      },
    ],
  ])('%s', (_, data) => {
    const text = `: comment\n\nevent: response.created\ndata: ${JSON.stringify(data)}`;
    for (const end of ['\n', '\r', '\r\n']) {
      const { reportedRun } = readAll(`${text}\n\n`.replaceAll('\n', end), 1_000);
      expect(reportedRun).toEqual({ id: 'resp_1', state: 'goes on' });
    }
  });

  test('that are lines of JSON', () => {
    const data = { type: 'response.created', response: { ...run, status: 'queued' } };
    expect(readAll(`${JSON.stringify(data)}\n`, 100).reportedRun).not.toBeNull();
  });

  test('of a thread', () => {
    const data = JSON.stringify({ id: 'run_1', object: 'thread.run', status: 'in_progress' });
    const text = `event: thread.run.in_progress\ndata: ${data}\n\n`;
    expect(readAll(text, 100).reportedRun).toEqual({ id: 'run_1', state: 'goes on' });
  });

  test.each([
    event('response.created', { id: 'resp_1', status: 'in_progress', background: false }),
    event('response.created', { id: 'resp_1', status: 'in_progress' }),
    delta,
    'data: {"type":"response.created"',
    'data: [DONE]\n\n',
  ])('%s tells of no run in the background', (text) => {
    expect(readAll(text, 100).reportedRun).toBeNull();
  });
});
