import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DepartureNotices } from '../../../scripts/serve/departures.ts';

const told: number[][] = [];
const server = createServer(({ headers }, response) => {
  const { departed } = JSON.parse(String(headers['x-cf'])) as { departed: number[] };
  told.push(departed);
  response.writeHead(204).end();
});

beforeEach(async () => {
  told.length = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterEach(() => server.close());

it('tells of all who leave at once, in headers that workerd takes', async () => {
  const { port } = server.address() as AddressInfo;
  const notices = new DepartureNotices('x-cf', () => port);
  const left = Array.from({ length: 20_000 }, (_, index) => 1_000_000 + index);
  for (const connection of left) notices.note(connection);
  await expect.poll(() => told.flat().length, { timeout: 20_000 }).toBe(left.length);
  expect(new Set(told.flat())).toEqual(new Set(left));
  expect(Math.max(...told.map((each) => JSON.stringify(each).length))).toBeLessThan(65_536);
});
