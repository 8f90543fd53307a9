// The same from a module of the old kind.
const { createHeadgate, HeadgateError } = require('headgate/client');

console.log(typeof createHeadgate, new HeadgateError('busy', 'No slot.').reason);
