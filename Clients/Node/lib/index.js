'use strict';

const { ApnsMockError, ApnsMockExpectationError } = require('./errors.js');
const { connect, start } = require('./start.js');

module.exports = { ApnsMockError, ApnsMockExpectationError, connect, start };
