BEGIN TRANSACTION;
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'6e9aa8c80f89','ada','What is a good diet?','2026-11-25T13:28:47.970952+00:00','2026-11-25T13:28:48.017125+00:00');
INSERT INTO "conversations" VALUES(2,'38a575e80ccc','bob','Work','2026-11-25T13:28:48.051942+00:00','2026-11-25T13:28:48.061092+00:00');
CREATE TABLE fact_fields (
	fact VARCHAR(32) NOT NULL, 
	field VARCHAR(32) NOT NULL, 
	PRIMARY KEY (fact), 
	FOREIGN KEY(fact) REFERENCES facts (id) ON DELETE CASCADE
);
INSERT INTO "fact_fields" VALUES('b0d34ed05ad8','health');
CREATE TABLE facts (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(200) NOT NULL, 
	text TEXT NOT NULL, 
	"key" VARCHAR(1000) NOT NULL, 
	source VARCHAR(200) NOT NULL, 
	"on" BOOLEAN NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	changed VARCHAR(40) NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (user, "key"), 
	UNIQUE (id)
);
INSERT INTO "facts" VALUES(1,'b0d34ed05ad8','ada','I''m lactose intolerant.','im lactose intolerant','typed',1,'2026-11-25T13:28:47.938430+00:00','2026-11-25T13:28:47.938430+00:00');
INSERT INTO "facts" VALUES(2,'f533c901ea59','ada','I like tea.','i like tea','typed',0,'2026-11-25T13:28:47.953157+00:00','2026-11-25T13:28:47.954261+00:00');
INSERT INTO "facts" VALUES(3,'1b8a394ab399','bob','I''m an engineer.','im an engineer','typed',1,'2026-11-25T13:28:47.955908+00:00','2026-11-25T13:28:47.955908+00:00');
CREATE TABLE preferences (
	user VARCHAR(200) NOT NULL, 
	choices TEXT NOT NULL, 
	PRIMARY KEY (user)
);
INSERT INTO "preferences" VALUES('ada','{"k": 6}');
CREATE TABLE schema_version (
	id INTEGER NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (id)
);
INSERT INTO "schema_version" VALUES(1,2);
CREATE TABLE tokens (
	id VARCHAR(32) NOT NULL, 
	user VARCHAR(64) NOT NULL, 
	label VARCHAR(100) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	used VARCHAR(40) NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "tokens" VALUES('3c9d631c9deb','ada','laptop','c95ed792448e6299d243d10feb81a791632483978442ef8a0fae5717fced0ff2','2026-11-25T13:28:49.915124+00:00','');
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	id VARCHAR(32) NOT NULL, 
	conversation VARCHAR(32) NOT NULL, 
	process VARCHAR(32) NOT NULL, 
	utterance TEXT NOT NULL, 
	reply TEXT NOT NULL, 
	words TEXT NOT NULL, 
	feedback INTEGER NOT NULL, 
	turn TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id), 
	FOREIGN KEY(conversation) REFERENCES conversations (id) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,'4ca1b9e3ab38','6e9aa8c80f89','85d81cdd36bc','What is a good diet?','Lentils are rich in protein. [1]','what is a good diet?
lentils are rich in protein. [1]',1,'{"utterance":"What is a good diet?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"4ca1b9e3ab38","created":"2026-11-25T13:28:47.971761Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[{"id":"p1","title":"Lentils","text":"Lentils are rich in protein.","score":1.5,"found_by":[],"source":"","confidence":null,"own":false}],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Lentils are rich in protein. [1]","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(2,'82895c16ba8c','6e9aa8c80f89','85d81cdd36bc','And to drink?','Oat drink.','and to drink?
oat drink.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"82895c16ba8c","created":"2026-11-25T13:28:48.010961Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Oat drink.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(3,'a411159ae53f','6e9aa8c80f89','85d81cdd36bc','And to drink?','Tea, without milk.','and to drink?
tea, without milk.',0,'{"utterance":"And to drink?","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"a411159ae53f","created":"2026-11-25T13:28:48.016902Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Tea, without milk.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
INSERT INTO "turns" VALUES(4,'25c745bc73e5','38a575e80ccc','85d81cdd36bc','Hello','Hi.','hello
hi.',0,'{"utterance":"Hello","history":[],"known":[],"choices":{"strategy":"concat_pf","loop":"grg","k":4,"library":"starter","form":"chat","loops":1,"retriever":"bm25","below":""},"id":"25c745bc73e5","created":"2026-11-25T13:28:48.060747Z","temporary":false,"intent":"question","english":"","asks":"","question":"","rewritten":false,"facts":[],"draft":"","iterations":[],"queries":[],"passages":[],"reserve":[],"confidence":null,"dropped":[],"digests":[],"left_out":[],"answer":{"text":"Hi.","unknown":false,"origin":"passages","outcome":"written"},"own_answer":"","pool":[],"reasoning":"","listed":[],"about":"","offers":[],"sentences":[],"citations":[],"status":"done","step":"","events":[],"cuts":[],"error":"","timings":{},"spent":{},"model":""}');
CREATE TABLE users (
	name VARCHAR(64) NOT NULL, 
	hash VARCHAR(300) NOT NULL, 
	created VARCHAR(40) NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "users" VALUES('ada','scrypt$16384$8$5$PbJCI4nMwPW/xEKrlFpE7g==$IAWlT8I5tLViQ/Dts4XDVDYGptbe1rAnIdKeEDnHzqE=','2026-11-25T13:28:49.913973+00:00');
CREATE TABLE uses (
	turn VARCHAR(32) NOT NULL, 
	fact VARCHAR(32) NOT NULL, 
	PRIMARY KEY (turn, fact), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "uses" VALUES('4ca1b9e3ab38','b0d34ed05ad8');
CREATE TABLE versions (
	turn VARCHAR(32) NOT NULL, 
	original VARCHAR(32) NOT NULL, 
	shown INTEGER NOT NULL, 
	side INTEGER NOT NULL, 
	PRIMARY KEY (turn), 
	FOREIGN KEY(turn) REFERENCES turns (id) ON DELETE CASCADE, 
	FOREIGN KEY(original) REFERENCES turns (id) ON DELETE CASCADE
);
INSERT INTO "versions" VALUES('82895c16ba8c','82895c16ba8c',0,0);
INSERT INTO "versions" VALUES('a411159ae53f','82895c16ba8c',1,0);
CREATE INDEX ix_conversations_user ON conversations (user);
CREATE INDEX turns_of ON turns (conversation, n);
CREATE INDEX ix_uses_fact ON uses (fact);
CREATE INDEX ix_versions_original ON versions (original);
CREATE INDEX ix_tokens_user ON tokens (user);
COMMIT;
