// Pages of lists: every item once, in order, whatever the size of a page.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { pageByName } from '../../../src/admin/shapes.ts';

it('pages put together are the whole list, sorted', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ minLength: 1 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 12 }),
      (names, limit) => {
        const seen: string[] = [];
        let cursor: string | undefined;
        do {
          const page = pageByName(names, (name) => name, { limit, cursor });
          expect(page.items.length).toBeLessThanOrEqual(limit);
          // Only an empty list has an empty page.
          expect(page.items.length).toBeGreaterThan(names.length > 0 ? 0 : -1);
          seen.push(...page.items);
          cursor = page.next_cursor ?? undefined;
        } while (cursor !== undefined);
        expect(seen).toEqual(names.toSorted((a, b) => (a < b ? -1 : 1)));
      },
    ),
  );
});
