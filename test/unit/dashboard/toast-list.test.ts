import { expect, it } from 'vitest';
import { withToast, type Toast } from '../../../dashboard/src/model/toast-list.ts';

it('a message that seven parts of a page say is shown once, as the latest', () => {
  const other: Toast = { id: 0, text: 'Done.', isBad: false };
  const shown = Array.from({ length: 7 }, (_, id) => ({ id: id + 1, text: 'Failed.', isBad: true }))
    .concat({ id: 8, text: 'Another.', isBad: true })
    .reduce<readonly Toast[]>(withToast, [other]);
  expect(shown.map(({ id, text }) => [id, text])).toEqual([
    [0, 'Done.'],
    [7, 'Failed.'],
    [8, 'Another.'],
  ]);
});
