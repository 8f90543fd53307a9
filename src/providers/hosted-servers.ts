import type { NamedServer } from './local-servers.ts';

/**
 * Hosts that other systems know by name and that are not built in here. An import creates upstreams for them. The
 * addresses are those that the systems themselves use, from `provider_metadata.go` of PicoClaw, `hermes_cli/auth.py` of
 * Hermes and the folders of `src/providers` of Portkey's gateway, all read on 2026-11-27. All of them use OpenAI's
 * dialect.
 */
export const HOSTED_SERVERS: readonly NamedServer[] = [
  ['arcee', 'https://api.arcee.ai/api/v1', { hermes: ['arcee', 'arcee-ai', 'arceeai'] }],
  ['avian', 'https://api.avian.io/v1', { picoclaw: ['avian'] }],
  ['cometapi', 'https://api.cometapi.com/v1', { portkey: ['cometapi'] }],
  [
    'dashscope-us',
    'https://dashscope-us.aliyuncs.com/compatible-mode/v1',
    { picoclaw: ['qwen-us', 'dashscope-us'] },
  ],
  ['featherless', 'https://api.featherless.ai/v1', { portkey: ['featherless-ai'] }],
  ['gmi', 'https://api.gmi-serving.com/v1', { hermes: ['gmi'] }],
  ['inference-net', 'https://api.inference.net/v1', { portkey: ['inference-net'] }],
  ['kilocode', 'https://api.kilo.ai/api/gateway', { hermes: ['kilocode'] }],
  ['kluster', 'https://api.kluster.ai/v1', { portkey: ['kluster-ai'] }],
  ['lambda', 'https://api.lambdalabs.com/v1', { portkey: ['lambda'] }],
  ['lemonfox', 'https://api.lemonfox.ai/v1', { portkey: ['lemonfox-ai'] }],
  ['longcat', 'https://api.longcat.chat/openai', { picoclaw: ['longcat'] }],
  [
    'mimo',
    'https://api.xiaomimimo.com/v1',
    { hermes: ['xiaomi', 'mimo', 'xiaomi-mimo'], picoclaw: ['mimo'] },
  ],
  ['modelscope', 'https://api-inference.modelscope.cn/v1', { picoclaw: ['modelscope'] }],
  ['ncompass', 'https://api.ncompass.tech/v1', { portkey: ['ncompass'] }],
  ['nscale', 'https://inference.api.nscale.com/v1', { portkey: ['nscale'] }],
  ['opencode-go', 'https://opencode.ai/zen/go/v1', { hermes: ['opencode-go'] }],
  ['opencode-zen', 'https://opencode.ai/zen/v1', { hermes: ['opencode-zen'] }],
  ['ovhcloud', 'https://oai.endpoints.kepler.ai.cloud.ovh.net/v1', { portkey: ['ovhcloud'] }],
  ['shengsuanyun', 'https://router.shengsuanyun.com/api/v1', { picoclaw: ['shengsuanyun'] }],
  ['tokenhub', 'https://tokenhub.tencentmaas.com/v1', { hermes: ['tencent-tokenhub'] }],
  ['upstage', 'https://api.upstage.ai/v1', { hermes: ['upstage', 'solar'], portkey: ['upstage'] }],
  ['venice', 'https://api.venice.ai/api/v1', { picoclaw: ['venice'] }],
  ['vivgrid', 'https://api.vivgrid.com/v1', { picoclaw: ['vivgrid'] }],
  ['volcengine', 'https://ark.cn-beijing.volces.com/api/v3', { picoclaw: ['volcengine'] }],
].map(([id, baseUrl, namedBy]) => ({ id, baseUrl, namedBy, dialect: 'openai' }) as NamedServer);
