import { describe, expect, it } from 'vitest';
import {
  isReporting,
  mayAsk,
  readClientMessage,
  readEvent,
} from '../../../../src/upstream/socket/messages.ts';

describe('messages of a client', () => {
  it('a request for a response has its model, its stream and the response that it continues', () => {
    const frame =
      '{"type":"response.create","model":"gpt-5","stream_id":"s","previous_response_id":"r"}';
    expect(mayAsk(frame)).toBe(true);
    expect(readClientMessage(frame, null)).toEqual({
      frame,
      kind: 'create',
      model: 'gpt-5',
      streamId: 's',
      previousId: 'r',
      isAppend: false,
    });
  });

  it.each([
    ['{"type":"response.steer","input":"response.create"}', 'steer'],
    ['{"type":"other","note":"response.create"}', 'other'],
  ])('others are none: %s', (frame, kind) => {
    expect(readClientMessage(frame, null).kind).toBe(kind);
  });

  it.each([
    ['escapes', '{"type":"response\\u002ecreate","model":"m"}'],
    ['bytes', new TextEncoder().encode('{"type":"response.create","model":"m"}').buffer],
  ])('a request is one in whatever way it is written: %s', (_, frame) => {
    expect(mayAsk(frame)).toBe(true);
    expect(readClientMessage(frame, null)).toMatchObject({ kind: 'create', model: 'm' });
  });

  it('what goes on from the response before asks for one too, of the same model', () => {
    const frame = '{"type":"response.append","input":[]}';
    expect(mayAsk(frame)).toBe(true);
    expect(readClientMessage(frame, 'gpt-5')).toMatchObject({
      kind: 'create',
      model: 'gpt-5',
      isAppend: true,
    });
  });

  it.each([
    ['{"type":"response.create","temperature":NaN}'],
    ['{"type":"response.create","type":"x"}'],
    ['{"type":"response.create","model":"a","mod\\u0065l":"b"}'],
    ['{"type":"response.create","stream_id":"a","stream_id":"b"}'],
    ['{"Type":"response.create","model":"m"}'],
    ['{"type":"x","TYPE":"response.create","model":"m"}'],
    ['{"type":"response.create","model":"m","\u017ftream_id":"a"}'],
    ['[{"type":"response.create","model":"m"}]'],
    ['[1]'],
    ['not JSON'],
    ['/**/{"type":"x"}'],
    ['{"type":"Response.Create","model":"m"}'],
    ['{"type":" response.create","model":"m"}'],
    ['{"type":"re\u017fponse.steer"}'],
    [new ArrayBuffer(3)],
    [new Uint8Array([0x7b, 0xff, 0x7d]).buffer],
  ])('what upstreams may read in another way is unreadable: %j', (frame) => {
    expect(readClientMessage(frame, null).kind).toBe('unreadable');
  });
});

describe('events of the upstream', () => {
  it.each([
    ['response.created', { kind: 'begun' }],
    ['response.completed', { kind: 'ended', isFailed: false }],
    ['response.incomplete', { kind: 'ended', isFailed: false }],
    ['response.cancelled', { kind: 'ended', isFailed: false }],
    ['response.queued', { kind: 'other' }],
    ['response.in_progress', { kind: 'other' }],
    ['response.failed', { kind: 'ended', isFailed: true }],
    ['response.steer.accepted', { kind: 'steered', isTaken: true }],
    ['response.steer.pending', { kind: 'steered', isTaken: false }],
    ['response.steer.failed', { kind: 'steered', isTaken: false }],
  ])('%s', (type, means) => {
    const frame = JSON.stringify({ sequence_number: 1, type });
    expect(isReporting(frame)).toBe(true);
    const event = { streamId: null, responseId: null, isStored: false, run: null, means };
    expect(readEvent(frame)).toEqual(event);
  });

  it.each([
    [
      { id: 'r', status: 'queued', background: true },
      { id: 'r', state: 'goes on' },
    ],
    [
      { id: 'r', status: 'in_progress', background: true },
      { id: 'r', state: 'goes on' },
    ],
    [{ id: 'r', status: 'in_progress', background: false }, null],
    [{ id: 'r', status: 'in_progress' }, null],
    ['queued', null],
  ])('of an answer that says %j, its run is %j', (response, run) => {
    const frame = JSON.stringify({ type: 'response.created', response });
    expect(readEvent(frame)?.run).toEqual(run);
  });

  it('an event has the id of its response', () => {
    const event = (response: object) =>
      readEvent(JSON.stringify({ type: 'response.created', response }));
    expect(event({ id: 'r' })).toMatchObject({ responseId: 'r', isStored: true });
    expect(event({ id: 'r', store: false })).toMatchObject({ responseId: 'r', isStored: false });
    expect(event({ id: 7 })).toMatchObject({ responseId: null, isStored: false });
  });

  it('a text that quotes an event is none', () => {
    const delta = JSON.stringify({ type: 'response.output_text.delta', delta: '{"type":"error"}' });
    expect(isReporting(delta)).toBe(false);
  });

  it.each([
    [{ status: 429 }, 429],
    [{ code: 'server_is_overloaded' }, 503],
    [{ error: { type: 'tokens', code: 'insufficient_quota' } }, 429],
    [{ status: 7, error: { code: 'rate_limit_exceeded' } }, 429],
    [{ code: 'server_error' }, 500],
    [{ error: { code: 'previous_response_not_found' } }, 400],
    [{}, 400],
  ])('an error has the status that it would have over HTTP: %j', (fields, status) => {
    expect(readEvent(JSON.stringify({ type: 'error', ...fields }))?.means).toMatchObject({
      status,
    });
  });

  it('of the headers of an error none is left that is no header', () => {
    const headers = { 'retry-after': 3, 'x\n': 'y', a: 'b\r\nc', d: ['e'], f: 'g' };
    const event = readEvent(JSON.stringify({ type: 'error', headers }));
    expect(event?.means).toMatchObject({ headers: { 'retry-after': '3', f: 'g' } });
  });
});
