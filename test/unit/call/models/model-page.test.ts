// What is read of the lists of models that upstreams return.
import { describe, expect, it } from 'vitest';
import { readModelPage } from '../../../../src/call/models/model-page.ts';

const ids = (json: unknown, dialect = 'openai') =>
  readModelPage(json, dialect)?.models.map(({ id }) => id) ?? null;
const next = (json: unknown, dialect = 'openai') => readModelPage(json, dialect)?.next ?? null;

describe('readModelPage', () => {
  it.each<[string, unknown, readonly string[] | null]>([
    ['OpenAI', { object: 'list', data: [{ id: 'a' }, { id: 'b' }] }, ['a', 'b']],
    ['Together', [{ id: 'meta/a', object: 'model' }], ['meta/a']],
    ['Ollama', { models: [{ name: 'a:8b', model: 'a:8b' }] }, ['a:8b']],
    ['Gemini', { models: [{ name: 'models/a' }] }, ['a']],
    ['llama.cpp', { models: [{ name: 'a' }], data: [{ id: 'a' }], object: 'list' }, ['a']],
    ['models beside empty data', { data: [], models: [{ name: 'a' }] }, ['a']],
    ['names alone', { data: ['a', 'b'] }, ['a', 'b']],
    ['a model name', [{ model: 'a' }], ['a']],
    ['a name that begins like Gemini’s', { data: [{ id: 'models/a' }] }, ['models/a']],
    ['none', { data: [] }, []],
    ['an object by name', { data: { a: {} } }, null],
    ['entries without a name', { data: [{}, null, 3, ''] }, null],
    ['an endless name', { data: [{ id: 'x'.repeat(501) }] }, null],
    ['a text', 'models', null],
    ['null', null, null],
  ])('reads the list of %s', (_, json, expected) => {
    expect(ids(json)).toEqual(expected);
  });

  it('takes off what Gemini writes in front of its models, on both of its routes', () => {
    expect(ids({ data: [{ id: 'models/gemini-3' }] }, 'gemini')).toEqual(['gemini-3']);
  });

  it('reads what it can, and says that it is not all', () => {
    const page = readModelPage({ data: [{ id: 'a' }, { no: 'id' }] }, 'openai');
    expect([page?.models.length, page?.isPartial]).toEqual([1, true]);
  });

  it.each<[string, unknown, string, object | null]>([
    [
      'Anthropic',
      { data: [{ id: 'a' }], has_more: true, last_id: 'a' },
      'anthropic',
      { after_id: 'a', limit: '1000' },
    ],
    ['OpenAI', { data: [{ id: 'a' }], has_more: true }, 'openai', { after: 'a', after_id: 'a' }],
    [
      'Gemini',
      { models: [{ name: 'a' }], nextPageToken: 't' },
      'gemini',
      { pageToken: 't', pageSize: '1000' },
    ],
    ['Cohere', { models: [{ name: 'a' }], next_page_token: 't' }, 'openai', { page_token: 't' }],
    ['the last page', { data: [{ id: 'a' }], has_more: false, last_id: 'a' }, 'anthropic', null],
    ['an empty page', { data: [], has_more: true, last_id: null }, 'anthropic', null],
    ['a bare array', ['a'], 'openai', null],
  ])('finds how the list of %s goes on', (_, json, dialect, expected) => {
    expect(next(json, dialect)).toEqual(expected);
  });
});
