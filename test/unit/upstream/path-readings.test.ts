// Paths that some server may read as leading out of the path of a base URL.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { modelsInReadings } from '../../../src/upstream/operation/operation.ts';
import { mayGoUp } from '../../../src/upstream/operation/readings.ts';

describe('a path may lead up', () => {
  it.each([
    '/..%2fb/v1/chat/completions',
    '/..%2Fb',
    '/%2e%2e%2fb',
    '/%2e./b',
    '/x/..%2f..%2fb',
    '/..%5cb',
    '/..\\b',
    '/..;/b',
    '/..;a=b/b',
    '/%2e%2e;a=b%2fb',
    '/..%3b/b',
    '/%252e%252e%252fb',
    '/%25252e%25252e%25252fb',
    '/%2525252e%2525252e%2525252fb',
    '/..%252f..%255cb',
    '/%c0%ae%c0%ae/b',
    '/%c0%2e%c0%2e/b',
    '/;..;/b',
    '/%c0%ae%c0%ae%c0%afb',
    '/%e0%80%ae%e0%80%ae/b',
    '/%f0%80%80%ae%f0%80%80%ae/b',
    '/..%c1%9cb',
    '/%u002e%u002e%u002fb',
    '/..%u2215b',
    '/%ef%bc%8e%ef%bc%8e/b',
    '/..%ef%bc%8fb',
    '/%e2%80%a5/b',
    '/.../b',
    '/..%20/b',
    '/..%00/b',
    '/..%09/b',
    '/.%00./b',
    '/..%23/b',
    '/..%3fx/b',
    '/..%e2%80%8b/b',
    '/v1/chat/completions/..%2f',
    '/x;a=%2f..%2f..%2fb',
  ])('%s', (path) => {
    expect(mayGoUp(path)).toBe(true);
  });
});

describe('a path leads nowhere else', () => {
  it.each([
    '/v1/chat/completions',
    '/v1/files/report..final.pdf',
    '/v1/files/a%20b..c',
    '/v1/models/gemini-2.5-flash:generateContent',
    '/v1beta/models/gemini-2.5%2Dflash%3AgenerateContent',
    '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic/converse',
    '/model/anthropic.claude-v1%3A0/invoke',
    '/run/@cf/meta/llama-3.1-8b',
    '/v1/files/100%25..txt',
    '/v1/files/%E6%96%87%E4%BB%B6.txt',
    '/v1/.well-known/x',
    '/v1//chat/completions',
    '/v1/chat/completions;x',
    '/v1/files/%zz',
  ])('%s', (path) => {
    expect(mayGoUp(path)).toBe(false);
  });

  it('decides any path', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        expect(typeof mayGoUp(`/${text}`)).toBe('boolean');
      }),
    );
  });
});

describe('servers may read several models', () => {
  const valuesOf = (path: string, dialect: 'gemini' | 'openai' | 'bedrock' = 'gemini') =>
    modelsInReadings('POST', path, dialect).map((model) =>
      model.from === 'path' ? model.value : model.from,
    );

  it.each([
    ['/v1beta/models/cheap:generateContent/..%2f..%2fmodels%2fdear:generateContent', 'dear'],
    ['/v1beta/models/dear:generateContent;/../cheap:generateContent', 'cheap'],
    ['/v1beta/models/cheap%3bdear:generateContent', 'cheap'],
    ['/v1beta/models/dear:generateContent/models/cheap:generateContent', 'dear'],
    ['/openai/deployments/cheap/openai/deployments/dear/chat/completions', 'dear'],
    ['/deployments/cheap/engines/dear/chat/completions', 'dear'],
    ['/v1beta/models/cheap%c0%af..%c0%afdear:generateContent', 'dear'],
    ['/v1beta/models/cheap%c1%9c..%c1%9cdear:generateContent', 'dear'],
    ['/v1beta/models/cheap%25c0%25af..%25c0%25afdear:generateContent', 'dear'],
    ['/v1beta/models/cheap%ef%bc%8f..%ef%bc%8fdear:generateContent', 'dear'],
    ['/v1beta/models/cheap%ef%bc%852f..%ef%bc%852fdear:generateContent', 'dear'],
    ['/v1beta/models/cheap%e2%81%84..%e2%81%84dear:generateContent', 'dear'],
    ['/v1beta/models/cheap%u002f..%u002fdear:generateContent', 'dear'],
    ['/v1beta/models/ch%e2%80%8beap:generateContent', 'cheap'],
  ])('in %s', (path, one) => {
    const values = valuesOf(path);
    expect(values).toContain(one);
    expect(values.length).toBeGreaterThan(1);
  });

  it.each([
    ['/v1beta/models/gemini-2.5%2Dflash:generateContent', 'gemini'],
    ['/v1beta/models/gemini-2.5-flash%3AgenerateContent', 'gemini'],
    ['/model/arn%3Aaws%3Abedrock%3A1%3Ainference-profile%2Fus.m/converse', 'bedrock'],
    ['/openai/deployments/mine/chat/completions', 'openai'],
    ['/v1/projects/p/locations/l/publishers/google/models/gemini:predict', 'gemini'],
    ['/v1beta/models/mod%C3%A8le-%E6%96%87:generateContent', 'gemini'],
    ['/v1beta/models/e%CC%81:generateContent', 'gemini'],
    ['/v1/chat/completions;x', 'openai'],
    ['/v1/chat%2fcompletions', 'openai'],
    ['/v1//chat/completions/', 'openai'],
  ] as const)('in %s there is one at most', (path, dialect) => {
    expect(valuesOf(path, dialect).length).toBeLessThan(2);
  });
});
