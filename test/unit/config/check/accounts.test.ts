import { describe, expect, it } from 'vitest';
import { checkConfig } from '../../../../src/config/check-config.ts';
import { upstreamSchema } from '../../../../src/contract/config/upstream.ts';
import { BUILT_IN_UPSTREAMS } from '../../../../src/providers/catalog.ts';
import { aConfig } from '../../routing/fixtures.ts';

const HASH = `sha256:${'0'.repeat(64)}`;

function check(account_by: string, keys: { id: string; hash: string }[] = []) {
  const config = aConfig({ upstreams: [{ id: 'openai', account_by }], keys });
  return checkConfig(config, BUILT_IN_UPSTREAMS, { privateUpstreams: false, jurisdiction: null });
}

describe('what names the account of a key', () => {
  it.each(['auto', 'key', 'claim:sub', 'claim:https://a/b', 'answer:x-org', 'header:x-team'])(
    'may be %s',
    (account_by) => {
      expect(upstreamSchema.parse({ id: 'openai', account_by })).toMatchObject({ account_by });
    },
  );

  it.each(['', 'sub', 'claim:', 'claim:a b', 'header:X-Team', 'answer:', 'cookie:a'])(
    'may not be %j',
    (account_by) => {
      const { error } = upstreamSchema.safeParse({ id: 'openai', account_by });
      expect(error?.issues.map(({ path }) => path)).toEqual([['account_by']]);
    },
  );

  it('is no header with a key', () => {
    const { errors } = check('header:authorization', [{ id: 'a', hash: HASH }]);
    expect(errors.map(({ path }) => path)).toEqual(['upstreams[0].account_by']);
  });

  it('is warned of where it is a header that nobody is believed', () => {
    expect(check('header:x-team').warnings).toEqual([
      expect.stringContaining('`account_by` of `openai`'),
    ]);
    expect(check('header:x-team', [{ id: 'a', hash: HASH }]).warnings).toEqual([]);
    expect(check('claim:sub').warnings).toEqual([]);
  });
});
