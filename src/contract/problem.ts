import * as z from 'zod';

/** A problem as in RFC 9457. */
export const problemSchema = z.object({
  type: z.string().describe('Kind of the problem: `about:blank`.'),
  title: z.string().describe('Short title of the problem.'),
  status: z.int().describe('HTTP status.'),
  detail: z.string().describe('Description of the problem.'),
  errors: z
    .array(
      z.object({
        path: z.string().describe('Path of the field, such as `limits.max_concurrency`.'),
        message: z.string().describe('What is wrong with its value.'),
      }),
    )
    .max(50)
    .optional()
    .describe('The first 50 invalid fields. Absent if the problem is not about fields.'),
  more: z.int().min(0).optional().describe('Number of further invalid fields.'),
  command: z
    .string()
    .optional()
    .describe(
      'Command that fixes the problem, for the environment of this Headgate. Absent if there is none.',
    ),
  afterwards: z.string().optional().describe('What to do after the command, for people.'),
  fault: z
    .string()
    .optional()
    .describe('What is wrong with the secret that the command sets, such as "is not set".'),
});
