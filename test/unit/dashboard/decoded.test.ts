import { expect, it } from 'vitest';
import { partitionName } from '../../../dashboard/src/model/decoded.ts';

it.each([
  ['fp_12', 'fp_12'],
  ['none', 'none'],
  ['@overflow', '@overflow'],
  ['https%3A%2F%2Fllm.example.com%2Fv1', 'https://llm.example.com/v1'],
  ['team%20a,gpt-4o', 'team a, gpt-4o'],
  ['100%', '100%'],
])('the partition %s is shown as %s', (partition, shown) => {
  expect(partitionName(partition)).toBe(shown);
});
