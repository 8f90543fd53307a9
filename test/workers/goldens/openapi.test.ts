// Freezes the OpenAPI documents of the admin API and of leases, as the Worker serves them.
import { expect, it } from 'vitest';
import { goldenFile, goldenText, undescribedFields, withoutProse } from '../../support/golden.ts';
import { call } from '../support/worker.ts';

interface Described {
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly (Described & { readonly name: string })[];
  readonly responses?: Readonly<Record<string, Described>>;
}

interface OpenApi {
  readonly info: { readonly title: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
}

/** Path parameters without a description. */
const PLAIN = /\/(?:lease|ticket)$/;

/** A field that several kinds of rejections share. Only the first ones have a description. */
const REPEATED = /\/rejection\/anyOf\/0\/oneOf\/\d+\/properties\/retryAfterMs$/;

it.each([
  ['openapi-admin', '/admin/api/openapi.json'],
  ['openapi-leases', '/leases/openapi.json'],
])('freezes %s', async (name, path) => {
  const response = await call(path);
  expect(response.status).toBe(200);
  const document = await response.json<OpenApi>();
  expect(document.info.title).not.toBe('');
  expect(document.info.description).not.toBe('');
  expect(undocumented(document).filter((at) => !PLAIN.test(at))).toEqual([]);
  expect(undescribedFields(document).filter((at) => !REPEATED.test(at))).toEqual([]);
  const contentType = response.headers.get('content-type');
  await expect(goldenText({ contentType, document: withoutProse(document) })).toMatchFileSnapshot(
    goldenFile(name),
  );
});

/** Lists the operations, parameters and responses without a description or summary. */
function undocumented({ paths }: OpenApi): string[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const { summary, description, parameters = [], responses = {} } = operation;
      const said = [
        ['summary', summary],
        ['description', description],
        ...parameters.map((one) => [one.name, one.description]),
        ...Object.entries(responses).map(([status, one]) => [status, one.description]),
      ];
      return said.flatMap(([name, text]) =>
        text === undefined || text === '' ? [`${method} ${path}/${name}`] : [],
      );
    }),
  );
}
