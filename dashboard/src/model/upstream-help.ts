import { upstreamSchema } from '../../../src/contract/config/upstream.ts';
import { fieldsOf } from './schema-fields.ts';

export const UPSTREAM_HELP: ReadonlyMap<string, string> = new Map(
  fieldsOf(upstreamSchema).map(({ path, help }) => [path, help]),
);
